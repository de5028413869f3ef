package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// program is a client that runs beside the test.
type program struct {
	cmd  *exec.Cmd
	file string
	done chan struct{}
	err  error
	said strings.Builder
}

// begins starts curl through the proxy, as another app, and waits for the first bytes.
func (r *rig) begins(args ...string) *program {
	r.Helper()
	p := &program{file: r.file(), done: make(chan struct{})}
	p.cmd = r.lab.Client(r.ctx, "curl", append([]string{"-sS", "--fail", "-x", proxyURL, "-o", p.file}, args...)...)
	p.cmd.Stderr = &p.said
	if err := p.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	r.until("bytes come", func() bool {
		st, err := os.Stat(p.file)
		return err == nil && st.Size() > 200_000
	})
	return p
}

// ended waits for the end of the program.
func (p *program) ended(r *rig) error {
	r.Helper()
	select {
	case <-p.done:
	case <-r.ctx.Done():
		r.Fatalf("%v goes on", p.cmd.Args)
	}
	return p.err
}

// TestCostsMidway: while apps that may not use metered links download, Wi-Fi becomes a metered hotspot under the same name; or the user's
// consent for mobile data ends. Nothing more crosses that link: tunnels and requests that pass through break off, a download resumes
// over a link that joins, or fails after wait_for_link.
func TestCostsMidway(t *testing.T) {
	const wait = 8 * time.Second
	sc := equal()
	sc.Links = append(sc.Links, netlab.Symmetric("other", 40*netlab.Mbit, 30*time.Millisecond))
	begin := func(t *testing.T, p *phone, links ...string) *rig {
		r := newRig(t, sc, netlab.NginxOptions{})
		r.android()
		r.configure(`wait_for_link = "8s"`)
		p.start(r, links...)
		return r
	}
	// silent checks that no packet crosses a link while do runs, once the last packets of its closed connections have
	// passed.
	silent := func(r *rig, link string, do func()) {
		r.Helper()
		before := int64(-1)
		r.until(link+" is silent", func() bool {
			packets, _ := r.carried(link)
			same := packets == before
			before = packets
			time.Sleep(time.Second / 2)
			return same
		})
		do()
		if after, _ := r.carried(link); after != before {
			r.Errorf("%d packets crossed %s", after-before, link)
		}
	}
	whole := func(r *rig, p *program, o netlab.Object) {
		r.Helper()
		if err := p.ended(r); err != nil {
			r.Errorf("%v: %s", err, &p.said)
		}
		if got := sha256.Sum256(r.read(p.file)); hex.EncodeToString(got[:]) != o.SHA256 {
			r.Error("wrong bytes")
		}
	}
	broken := func(r *rig, what string, p *program, o netlab.Object) {
		r.Helper()
		if err := p.ended(r); err == nil {
			r.Errorf("%s succeeds: %d bytes of %d", what, len(r.read(p.file)), o.Size)
		}
	}
	t.Run("a hotspot, then another link", func(t *testing.T) {
		p := &phone{apps: "none"}
		r := begin(t, p, "wifi")
		o := r.object(15_000_000)
		download := r.begins(r.nginx.NamedURL(o))
		tunnel := r.begins("--insecure", r.nginx.NamedSecureURL(o))
		passed := r.begins("-H", "TE: trailers", r.nginx.NamedURL(o))
		p.metered = map[string]bool{"wifi": true}
		p.show("wifi")
		broken(r, "a tunnel", tunnel, o)
		broken(r, "a request that passes through", passed, o)
		silent(r, "wifi", func() {
			time.Sleep(time.Second) // for packets that must not arrive
			p.show("wifi", "other")
			whole(r, download, o)
		})
	})
	t.Run("a hotspot, and nothing else", func(t *testing.T) {
		p := &phone{apps: "none"}
		r := begin(t, p, "wifi")
		o := r.object(15_000_000)
		download := r.begins(r.nginx.NamedURL(o))
		p.metered = map[string]bool{"wifi": true, "lte": true}
		p.show("wifi", "lte")
		since := time.Now()
		silent(r, "wifi", func() { broken(r, "the download", download, o) })
		if took := time.Since(since); took < wait {
			t.Errorf("failed after %v", took)
		}
		if packets, _ := r.carried("lte"); packets > 0 {
			t.Errorf("%d packets crossed lte", packets)
		}
	})
	t.Run("the consent ends", func(t *testing.T) {
		p := &phone{apps: "all", metered: map[string]bool{"lte": true}}
		r := begin(t, p, "wifi", "lte")
		o := r.object(30_000_000)
		download := r.begins(r.nginx.NamedURL(o))
		r.until("lte helps", func() bool {
			_, n := r.carried("lte")
			return n > 300_000
		})
		p.apps = "none"
		p.show("wifi", "lte")
		silent(r, "lte", func() { whole(r, download, o) })
	})
}
