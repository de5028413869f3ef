package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestMonthlyLimit: a link carries no more in a month than its user agreed to, whatever happens to the program.
func TestMonthlyLimit(t *testing.T) {
	const month = 10_000_000
	r := newRig(t, quick(), netlab.NginxOptions{})
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(r.lab.Dir+"/tributary/config.toml", "[link.lte]\nmonthly = \"10MB\"\n")
	noted := func() (n int64) {
		t.Helper()
		var file struct{ Spent map[string]map[string]int64 }
		if err := json.Unmarshal(r.read(r.lab.Dir+"/.local/state/tributary/allowance.json"), &file); err != nil {
			t.Fatal(err)
		}
		for _, day := range file.Spent["lte"] {
			n += day
		}
		return n
	}
	lte := r.lab.Link("lte").Name
	o := r.object(50_000_000)
	r.serve()

	// The program is killed in the middle.
	r.stopped = true
	file := r.file()
	cmd := r.lab.Client(r.ctx, "curl", "-sS", "-x", proxyURL, "-o", file, r.nginx.NamedURL(o))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.until("a part of the month is spent", func() bool {
		_, n := r.carried(lte)
		return n > month/3
	})
	r.kill()
	_ = cmd.Wait() // its download breaks off
	r.settle()
	_, before := r.carried(lte)
	if n := noted(); n < before {
		t.Errorf("%d bytes are noted of %d that were carried", n, before)
	}

	r.serve()
	r.spend(o)
	_, n := r.carried(lte)
	t.Logf("%s carried %d bytes of %d; %d are noted", lte, n, month, noted())
	if n > month+firstWindow || n < month*8/10 {
		t.Errorf("%d bytes were carried of %d", n, month)
	}
	var status struct {
		Links []struct {
			Name, State, Reason string
			Left                int64 `json:"monthly_left_bytes"`
		}
	}
	out := r.ok(r.client(r.options.Binary, "status", "--json", "--control", r.lab.Dir+"/tributary/control.sock"))
	if err := json.Unmarshal(out.body, &status); err != nil {
		t.Fatal(err)
	}
	told := false
	for _, l := range status.Links {
		told = told || l.Name == lte && l.State == "down" && strings.Contains(l.Reason, "its limit for this month") && l.Left == 0
	}
	if !told {
		t.Errorf("the status does not say so: %s", out.body)
	}
	r.download(r.nginx.NamedURL(o), o)
	r.settle()
	if _, again := r.carried(lte); again-n > 10_000 {
		t.Errorf("%d bytes more", again-n)
	}
}

// TestAppMonthlyLimit: the same where an app sets the limits of its networks, all mobile ones together.
func TestAppMonthlyLimit(t *testing.T) {
	const month = 4_000_000
	sc := quick()
	sc.Links = append(sc.Links, netlab.Symmetric("other", 40*netlab.Mbit, 30*time.Millisecond))
	r := newRig(t, sc, netlab.NginxOptions{})
	r.android()
	for _, dir := range []string{".local", ".local/state", ".local/state/tributary"} {
		if err := errors.Join(os.Mkdir(filepath.Join(r.lab.Dir, dir), 0o700), os.Chown(filepath.Join(r.lab.Dir, dir), appUser, appUser)); err != nil {
			t.Fatal(err)
		}
	}
	mobile := func() int64 {
		_, lte := r.carried("lte")
		_, other := r.carried("other")
		return lte + other
	}
	o := r.object(40_000_000)
	newPhone(r, month, "wifi", "lte")
	r.stopped = true
	cmd := r.lab.Client(r.ctx, "curl", "-sS", "-x", proxyURL, "-o", r.file(), r.nginx.NamedURL(o))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.until("a part of the month is spent", func() bool { return mobile() > month/3 })
	r.kill()
	_ = cmd.Wait() // its download breaks off
	r.settle()

	newPhone(r, month, "wifi", "lte", "other")
	r.spend(o)
	n := mobile()
	t.Logf("mobile links carried %d bytes of %d", n, month)
	if n > month+firstWindow || n < month*7/10 {
		t.Errorf("%d bytes were carried of %d", n, month)
	}
	r.download(r.nginx.NamedURL(o), o)
	r.settle()
	if again := mobile(); again-n > 20_000 {
		t.Errorf("%d bytes more", again-n)
	}
}

// TestPatternLimit: links whose names match a pattern carry no more together than its limit.
func TestPatternLimit(t *testing.T) {
	const month = 6_000_000
	sc := quick()
	sc.Links = append(sc.Links, netlab.Symmetric("lte2", 40*netlab.Mbit, 30*time.Millisecond))
	r := newRig(t, sc, netlab.NginxOptions{})
	if err := os.MkdirAll(r.lab.Dir+"/tributary", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.lab.Dir+"/tributary/config.toml", []byte("[link.\"lte|?te2\"]\nmonthly = \"6MB\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := r.object(40_000_000)
	r.serve()
	r.spend(o)
	_, one := r.carried(r.lab.Link("lte").Name)
	_, two := r.carried(r.lab.Link("lte2").Name)
	t.Logf("the links carried %d and %d bytes of %d", one, two, month)
	if n := one + two; n > month+2*firstWindow || n < month*6/10 {
		t.Errorf("%d bytes were carried of %d", n, month)
	}
	if one < month/20 || two < month/20 {
		t.Error("only one of the links was used: nothing is shared")
	}
}

// spend downloads an object until the log says that a limit is reached: on a busy machine the other links may carry most of
// it.
func (r *rig) spend(o netlab.Object) {
	r.Helper()
	r.until("the limit is reached", func() bool {
		r.download(r.nginx.NamedURL(o), o)
		return strings.Contains(r.proxy.Said(), "this link has reached its data limit")
	})
	r.settle()
}

// firstWindow is how much a connection may receive before its first request.
const firstWindow = 64 << 10
