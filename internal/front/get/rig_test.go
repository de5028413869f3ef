package get

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

const (
	threshold = 64 << 10
	mid       = 1<<20 + 12345 // some ranges per link, no multiple of anything
	paced     = 2 << 20       // bytes per second of one connection: both links are needed for long enough
)

// rig is a Transport over two links, and a folder.
type rig struct {
	*testing.T
	dir       string
	transport http.RoundTripper
	notes     []string
}

// dialer returns the real destination of a connection over a link to an address.
type dialer func(l link.Link, addr string) string

// toNodes leads wifi to node 0 and lte to node 1, whatever the address.
func toNodes(s *origintest.Server) dialer {
	return func(l link.Link, _ string) string { return s.Addr(map[string]int{"wifi": 0, "lte": 1}[l.Name]) }
}

// straight leads every link to the address itself.
func straight(_ link.Link, addr string) string { return addr }

func newRig(t *testing.T, to dialer, roots *x509.CertPool) *rig {
	t.Helper()
	r := &rig{T: t, dir: t.TempDir()}
	dial := func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, to(l, addr))
	}
	var links []link.Link
	for i, name := range []string{"wifi", "lte"} {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		links = append(links, link.Link{Name: name, Metric: 100 * (i + 1), Addrs: []netip.Addr{addr}})
	}
	cfg := config.Default()
	cfg.Threshold, cfg.WaitForLink = threshold, 5*time.Second
	tr, err := transport.New(transport.Config{
		Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(link.DialFunc(dial).Over(links...)...), Roots: roots,
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tr.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); tr.Close() })
	r.transport = tr
	return r
}

// get downloads into the rig's folder; o.Output is relative to it.
func (r *rig) get(ctx context.Context, url string, o Options) (Result, error) {
	r.Helper()
	if o.Output != "-" && !filepath.IsAbs(o.Output) {
		o.Dir = filepath.Join(r.dir, o.Dir)
	}
	r.notes, o.Partial = nil, r.store()
	g := &Getter{Transport: r.transport, Options: o, Note: func(text string) { r.notes = append(r.notes, text) }}
	return g.Get(ctx, url, NewMeter())
}

// path returns the path of a file in the folder.
func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// isObject fails the test unless the file is the object and nothing else is left of the download.
func (r *rig) isObject(name string, o origintest.Object) {
	r.Helper()
	b, err := os.ReadFile(r.path(name))
	if err != nil {
		r.Error(err)
		return
	}
	if int64(len(b)) != o.Size || o.Mismatch(b, 0) >= 0 {
		r.Errorf("%d bytes, the first wrong one is %d; want %d", len(b), o.Mismatch(b, 0), o.Size)
	}
	r.holds(name)
}

// holds fails the test unless the folder contains exactly these files.
func (r *rig) holds(names ...string) {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(names) {
		r.Errorf("the folder holds %q, want %q", got, names)
	}
}

// write puts a file into the folder.
func (r *rig) write(name string, content []byte) {
	r.Helper()
	if err := os.WriteFile(r.path(name), content, 0o644); err != nil {
		r.Fatal(err)
	}
}

// fails fails the test unless err is of this kind and its text contains all of want.
func (r *rig) fails(err error, kind Kind, want ...string) {
	r.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		r.Errorf("error %v, want one of kind %d", err, kind)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			r.Errorf("error %q lacks %q", err, w)
		}
	}
}

// bothCarried fails the test unless both links delivered a part.
func (r *rig) bothCarried(res Result) {
	r.Helper()
	if l := res.Links; len(l) != 2 || l[0].Bytes == 0 || l[1].Bytes == 0 {
		r.Errorf("not both links brought something: %+v", l)
	}
}

// markOfObject returns the mark of an object's version.
func markOfObject(o origintest.Object) string {
	var id transport.Identity
	id.ETag, id.Modified, id.Type = o.ETag, o.Modified.UTC().Format(http.TimeFormat), o.Type
	return markOf(id)
}

// secure starts an https server with the handler h, for HTTP/2 if h2 is set. It also returns the certificates that verify it.
func secure(t *testing.T, h2 bool, h http.Handler) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = h2
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

// serveObject serves an object with ranges, slowly enough for both links to take part.
func serveObject(o origintest.Object) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(&slow{ResponseWriter: w, began: time.Now()}, q, "", time.Time{}, io.NewSectionReader(o, 0, o.Size))
	}
}

// slow paces writes to paced bytes per second.
type slow struct {
	http.ResponseWriter
	began time.Time
	n     int
}

func (s *slow) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		k := min(len(p), 16<<10)
		var m int
		m, err = s.ResponseWriter.Write(p[:k])
		n, p, s.n = n+m, p[m:], s.n+m
		http.NewResponseController(s.ResponseWriter).Flush()
		<-time.After(time.Until(s.began.Add(time.Duration(float64(s.n) / paced * float64(time.Second)))))
	}
	return n, err
}
