package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUse: use refuses a port that another user could take, and undoes the changes for all programs.
func TestUse(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PATH", t.TempDir()) // no systemctl
	asked := 0
	gateway := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer gateway.Close()
	at := strings.TrimPrefix(gateway.URL, "http://")
	use := func(args ...string) (code int, said string) {
		t.Helper()
		var out bytes.Buffer
		a := &app{version: "v9", rawStdout: &out, rawStderr: &out, serve: noServe, proxy: noProxy, getenv: func(k string) string {
			return map[string]string{"HOME": home, "SHELL": "/bin/sh", "RUNTIME_DIRECTORY": home}[k]
		}}
		code = a.run(t.Context(), append([]string{"use"}, args...))
		return code, out.String()
	}
	if code, said := use("pip", "--gateway", at); code != exitFailure || !strings.Contains(said, "nothing was changed: while the proxy does not run, any user") || asked > 0 {
		t.Errorf("R226 a port that others can take: %d, %d requests, %s", code, asked, said)
	}
	files := func() (all []string) {
		all, err := filepath.Glob(filepath.Join(home, ".config", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := files(); len(got) > 0 {
		t.Errorf("it wrote %v", got)
	}
	for _, program := range []string{"pip", "go"} {
		if code, said := use(program, "--gateway", at, "--force"); code != exitOK {
			t.Fatalf("%s: %d %s", program, code, said)
		}
	}
	if got := files(); len(got) != 2 || asked != 2 {
		t.Errorf("it wrote %v after %d requests", got, asked)
	}
	if code, said := use(); code != exitUsage {
		t.Errorf("no program: %d %s", code, said)
	}
	// What cannot be undone does not keep the rest from being undone.
	env := filepath.Join(home, ".config", "go", "env")
	text, err := os.ReadFile(env)
	if err == nil {
		err = os.WriteFile(env, bytes.ReplaceAll(text, []byte("http"), []byte("HTTP")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, said := use("--undo"); code == exitOK || !strings.Contains(said, "go: ") {
		t.Errorf("--undo with changed lines: %d %s", code, said)
	}
	if got := files(); len(got) != 1 || got[0] != env {
		t.Errorf("after --undo: %v", got)
	}
	if err := os.WriteFile(env, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := use("--undo"); code != exitOK || len(files()) > 0 {
		t.Errorf("--undo: %d %s %v", code, said, files())
	}
	if code, said := use("--undo"); code != exitOK || said != "unchanged\n" {
		t.Errorf("--undo again: %d %s", code, said)
	}
}
