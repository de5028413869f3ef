package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// finding is a check of doctor.
type finding struct{ Name, Verdict, Found, Fix string }

// doctor runs the program's doctor in the client namespace and returns its exit code and its findings by name.
func (r *rig) doctor() (int, map[string]finding) {
	r.Helper()
	out := r.own("doctor", "--json", "--link", "wifi", "--link", "lte")
	var list []finding
	if err := json.Unmarshal(out.body, &list); err != nil {
		r.Fatalf("%v:\n%s%s", err, out.body, out.said)
	}
	all := map[string]finding{}
	for _, f := range list {
		all[f.Name] = f
	}
	return out.code, all
}

// own runs the program under test with the lab's directory as the user's directories.
func (r *rig) own(args ...string) ran {
	r.Helper()
	var said strings.Builder
	cmd := r.lab.Client(r.ctx, r.options.Binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.lab.Dir, "XDG_CONFIG_HOME=" + filepath.Join(r.lab.Dir, "its config")}
	cmd.Stderr = &said
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	return ran{body: out, said: said.String(), code: cmd.ProcessState.ExitCode(), failed: err}
}

// shell runs a command as its user would type it.
func (r *rig) shell(command string) {
	r.Helper()
	if c := r.client("sh", "-c", command); c.failed != nil {
		r.Fatalf("%s: %v: %s", command, c.failed, c.said)
	}
}

// TestDoctorMends breaks the second link in ways that users meet, checks that it is broken, lets doctor diagnose the
// fault, runs the command that doctor suggests, and checks again.
func TestDoctorMends(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(1000)
	works := func(r *rig) bool {
		r.Helper()
		return r.client("curl", "-sS", "-4", "--connect-timeout", "2", "-o", "/dev/null", "--interface", "lte", o.URL).failed == nil
	}
	if code, all := r.doctor(); code != 0 || !works(r) {
		t.Fatalf("exit code %d in a lab where all is well: %+v", code, all)
	}

	// Programs that bind to a device find lte by its own metric; the rules by source address decide which answers are
	// accepted.
	r.shell("sysctl -w net.ipv4.conf.lte.rp_filter=1")
	if code, all := r.doctor(); code != 0 || all["rp_filter lte"].Verdict != "ok" || !works(r) {
		t.Errorf("strict filter, but a route by source: exit code %d, works %v, %+v", code, works(r), all["rp_filter lte"])
	}

	for _, c := range []struct{ name, check, damage string }{
		{"strict reverse path filter", "rp_filter lte", "ip rule del table 1002"},
		{"no route", "route lte", "ip route del default dev lte; ip -6 route del default dev lte; ip -6 rule del table 1002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.on(t)
			r.shell(c.damage)
			// without a route Linux takes every address for a neighbor, and here the origin is one
			if works(r) && c.check != "route lte" {
				t.Error("it works all the same")
			}
			code, all := r.doctor()
			f := all[c.check]
			if code != 10 || f.Verdict != "fail" || f.Fix == "" {
				t.Fatalf("exit code %d, %+v", code, f)
			}
			r.shell(f.Fix)
			if code, all := r.doctor(); code != 0 || all[c.check].Verdict != "ok" || !works(r) {
				t.Errorf("after  %s : exit code %d, works %v, %+v", f.Fix, code, works(r), all[c.check])
			}
		})
	}

	t.Run("no DNS", func(t *testing.T) {
		r := r.on(t)
		r.shell("echo nameserver 127.0.0.53 > /etc/resolv.conf")
		code, all := r.doctor()
		for _, name := range r.lab.LinkNames() {
			f := all["dns "+name]
			if code != 10 || f.Verdict != "fail" || f.Fix == "" {
				t.Fatalf("exit code %d, %+v", code, f)
			}
			r.shell(f.Fix)
		}
		if code, all := r.doctor(); code != 0 || all["dns lte"].Verdict != "ok" {
			t.Errorf("afterwards: exit code %d, %+v", code, all)
		}
		file := r.file()
		r.ok(r.own("get", "-q", "--link", "wifi", "--link", "lte", "-o", file, r.nginx.NamedURL(o)))
		r.isObject(r.read(file), o)
	})
}
