package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	"github.com/tributary-http/tributary/internal/lab"
)

type finding struct{ Name, Verdict, Found, Fix string }

// doctor runs the program's doctor in the client's place and returns its exit code and findings by name.
func (r *rig) doctor() (int, map[string]finding) {
	r.Helper()
	cmd := r.lab.Client(r.ctx, r.options.Binary, "doctor", "--json", "--link", "wifi", "--link", "lte")
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	var list []finding
	if err := json.Unmarshal(out, &list); err != nil {
		r.Fatalf("%v:\n%s", err, out)
	}
	all := map[string]finding{}
	for _, f := range list {
		all[f.Name] = f
	}
	return cmd.ProcessState.ExitCode(), all
}

// TestDoctorMends breaks the second link in ways that users meet, lets doctor find out, runs the command that it gives, and
// asks again.
func TestDoctorMends(t *testing.T) {
	r := newRig(t, quick(), lab.NginxOptions{})
	code, all := r.doctor()
	if code != 0 {
		t.Fatalf("exit code %d in a lab where all is well: %+v", code, all)
	}
	for _, c := range []struct{ name, check, damage string }{
		{"strict reverse path filter", "rp_filter lte", "sysctl -w net.ipv4.conf.lte.rp_filter=1"},
		{"no route", "route lte", "ip route del default dev lte; ip -6 route del default dev lte; " +
			"ip rule del table 1002; ip -6 rule del table 1002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, err := r.lab.Client(r.ctx, "sh", "-c", c.damage).CombinedOutput(); err != nil {
				t.Skipf("%s: %v: %s", c.damage, err, out)
			}
			code, all := r.doctor()
			f := all[c.check]
			if code != 10 || f.Verdict != "fail" || f.Fix == "" {
				t.Fatalf("exit code %d, %+v", code, f)
			}
			if out, err := r.lab.Client(r.ctx, "sh", "-c", f.Fix).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", f.Fix, err, out)
			}
			if code, all := r.doctor(); code != 0 || all[c.check].Verdict != "ok" {
				t.Errorf("after  %s : exit code %d, %+v", f.Fix, code, all[c.check])
			}
		})
	}
}
