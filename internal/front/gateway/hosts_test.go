package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHostsAreRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tributary", "gateway-hosts.json")
	open := func() *Hosts {
		t.Helper()
		h, err := NewHosts([]string{"listed.example"}, path)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := open()
	record := func(program string, hosts ...string) {
		t.Helper()
		if err := h.Record(t.Context(), program, hosts); err != nil {
			t.Fatal(err)
		}
	}
	record("pip", "PyPI.example", "listed.example")
	record("go", "proxy.example:8443")
	for _, h := range []*Hosts{h, open()} {
		if all := h.All(); !slices.Equal(all, []string{"listed.example", "proxy.example:8443", "pypi.example"}) {
			t.Error(all)
		}
		if !h.allowed("pypi.example") || h.allowed("proxy.example") || !slices.Equal(h.Recorded("go"), []string{"proxy.example:8443"}) {
			t.Error("not as recorded")
		}
	}
	record("pip")
	record("go", "other.example")
	if all := open().All(); !slices.Equal(all, []string{"listed.example", "other.example"}) {
		t.Error(all)
	}
	for _, bad := range []string{"", "a b", "https://a.example", "a.example/x", "*", "a@b.example", "a..b", "a.example:0"} {
		if err := h.Record(t.Context(), "x", []string{bad}); err == nil {
			t.Errorf("%q is recorded", bad)
		}
		if _, err := NewHosts([]string{bad}, ""); err == nil {
			t.Errorf("%q is listed", bad)
		}
	}
	if err := h.Record(t.Context(), "x", make([]string, maxHosts+1)); err == nil {
		t.Error("too many")
	}
	// A record that others may write to, or with invalid content, is not trusted; the hosts of the configuration still apply.
	for name, spoil := range map[string]func(){
		"foreign": func() { _ = os.Chmod(path, 0o666) },
		"broken":  func() { _ = os.Chmod(path, 0o600); _ = os.WriteFile(path, []byte(`{"x":["a b"]}`), 0o600) },
	} {
		spoil()
		if h, err := NewHosts([]string{"listed.example"}, path); err == nil || h == nil || !slices.Equal(h.All(), []string{"listed.example"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
