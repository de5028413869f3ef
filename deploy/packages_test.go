package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemoval: before a package goes, it undoes what root has set up, says which users have settings left, and stops every unit.
func TestRemoval(t *testing.T) {
	for script, arg := range map[string]string{"packages/deb-prerm": "remove", "packages/rpm-preun": "0"} {
		t.Run(script, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				t.Helper()
				path = filepath.Join(dir, path)
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if err == nil {
					err = os.WriteFile(path, []byte(text), 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			log := filepath.Join(dir, "log")
			write("bin/tributary", "#!/bin/sh\necho HOME=$HOME tributary $* >>"+log+"\nexit 1\n")
			write("bin/getent", "#!/bin/sh\nfor u in alice bob carol; do echo $u:x:1:1::"+dir+"/$u:/bin/sh; done\necho odd:x:1:1::/nowhere:/bin/sh\n")
			for _, tool := range []string{"systemctl", "deb-systemd-invoke"} {
				write("bin/"+tool, "#!/bin/sh\necho $* >>"+log+"\n")
			}
			const record = "/.local/state/tributary/use.json"
			write("root"+record, `{"pip":{}}`)
			write("alice"+record, `{"pip":{"gateway":"127.0.0.1:8081"}}`)
			write("bob"+record, "{}")
			write("run/systemd/system/x", "")
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			here := strings.NewReplacer("/root", dir+"/root", "/run/systemd", dir+"/run/systemd").Replace(string(text))
			cmd := exec.CommandContext(t.Context(), "sh", "-c", here, "sh", arg)
			cmd.Env = append(os.Environ(), "PATH="+dir+"/bin:"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "now, of: alice\n") || strings.Contains(string(out), "bob") {
				t.Errorf("%v %s", err, out)
			}
			said, err := os.ReadFile(log)
			if err != nil || !strings.Contains(string(said), "HOME="+dir+"/root tributary use --undo\n") {
				t.Errorf("%v %s", err, said)
			}
			for unit := range sockets {
				if !strings.Contains(string(said), "stop tributary.socket") || strings.Count(string(said), unit) < 2 {
					t.Errorf("%s is not stopped: %s", unit, said)
				}
			}
		})
	}
}
