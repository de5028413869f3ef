package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/lab"
)

// TestMonthlyLimit: a link carries no more in a month than its user agreed to, whatever happens to the program.
func TestMonthlyLimit(t *testing.T) {
	const month = 10_000_000
	r := newRig(t, quick(), lab.NginxOptions{})
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
		var file struct{ Spent map[string]int64 }
		if err := json.Unmarshal(r.read(r.lab.Dir+"/.local/state/tributary/allowance.json"), &file); err != nil {
			t.Fatal(err)
		}
		return file.Spent["lte"]
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
	if n := noted(); n < before-bdp {
		t.Errorf("%d bytes are noted of %d that were carried", n, before)
	}

	r.serve()
	r.download(r.nginx.NamedURL(o), o)
	r.settle()
	_, n := r.carried(lte)
	t.Logf("%s carried %d bytes of %d; %d are noted", lte, n, month, noted())
	if n > month+2*bdp || n < month*8/10 {
		t.Errorf("%d bytes were carried of %d", n, month)
	}
	if !strings.Contains(r.proxy.Said(), "in a month is spent") {
		t.Error("nobody was told")
	}
	r.download(r.nginx.NamedURL(o), o)
	r.settle()
	if _, again := r.carried(lte); again-n > 10_000 {
		t.Errorf("%d bytes more", again-n)
	}
}

// bdp is the bandwidth-delay product of the link lte of quick.
const bdp = 40e6 / 8 * 30 / 1000
