package get

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestSpotCheck downloads to a file over two links. One leads to a server that has another object under the same headers. The
// result is one of the two objects, or an error.
func TestSpotCheck(t *testing.T) {
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("emulated, a link may take longer for its first bytes than the other for all")
	}
	const size = 4e6
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("R210 HTTP/2 %v", h2), func(t *testing.T) {
			objects := map[string]origintest.Object{
				"wifi": origintest.Object{Size: size}.Defaults(), "lte": origintest.Object{Size: size, Seed: 1}.Defaults(),
			}
			addrs := map[string]string{}
			var url string
			var roots *x509.CertPool
			for name, o := range objects {
				s, r := secure(t, h2, serveObject(o))
				addrs[name], url, roots = s.Listener.Addr().String(), s.URL, r // both servers have one certificate
			}
			var next, failed atomic.Int64
			var workers sync.WaitGroup
			for range 5 {
				workers.Go(func() {
					for i := next.Add(1); i <= 20; i = next.Add(1) {
						t.Run(fmt.Sprint(i), func(t *testing.T) {
							r := newRig(t, func(l link.Link, _ string) string { return addrs[l.Name] }, roots)
							res, err := r.get(t.Context(), url, Options{Output: "object"})
							if err != nil {
								failed.Add(1)
								r.fails(err, Server, "one link")
								return
							}
							r.bothCarried(res)
							b, err := os.ReadFile(r.path("object"))
							if err != nil || len(b) != size || objects["wifi"].Mismatch(b, 0) >= 0 && objects["lte"].Mismatch(b, 0) >= 0 {
								t.Errorf("%d bytes, neither object, %v", len(b), err)
							}
							r.holds("object")
						})
					}
				})
			}
			workers.Wait()
			if n := failed.Load(); n > 1 {
				t.Errorf("%d of 20 downloads failed", n)
			}
		})
	}
}

// doubtful is content whose end turns out to be wrong after it was written.
type doubtful struct {
	io.Reader
	o     origintest.Object
	sound int64
}

func (d doubtful) Close() error { return nil }

// WriteAtTo implements scatteredBody.
func (d doubtful) WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (int64, error) {
	const n = mid / 2
	if _, err := w.WriteAt(d.o.Bytes(0, n), 0); err != nil {
		return 0, err
	}
	progress(n, n)
	return d.sound, &engine.AttemptError{Op: "check", Outcome: fault.Differs, Err: errors.New("differs")}
}

// RoundTrip implements http.RoundTripper.
func (d doubtful) RoundTrip(*http.Request) (*http.Response, error) {
	h := http.Header{"Etag": {d.o.ETag}, "Content-Type": {d.o.Type}, "Accept-Ranges": {"bytes"}}
	return &http.Response{StatusCode: http.StatusOK, Header: h, ContentLength: d.o.Size, Body: d}, nil
}

// TestDoubtfulBytes: a download that fails because two links differ keeps only the reliable bytes.
func TestDoubtfulBytes(t *testing.T) {
	d := doubtful{o: origintest.Object{Size: mid}.Defaults(), sound: 100_000}
	t.Run("R210 a file", func(t *testing.T) {
		r := &rig{T: t, dir: t.TempDir(), transport: d}
		_, err := r.get(t.Context(), "http://h/object", Options{Checksum: sumOf(t, d.o)})
		r.fails(err, Server, "one link", "100000 of")
		b, err := os.ReadFile(r.path("object.part"))
		if prefix, c := r.claims(); err != nil || int64(len(b)) != d.sound || prefix != d.sound || number(c["synced"]) > d.sound {
			t.Errorf("%d bytes, %d, %v, %v", len(b), prefix, c, err)
		}
	})
	t.Run("R210 nothing", func(t *testing.T) {
		d.sound = 0
		r := &rig{T: t, dir: t.TempDir(), transport: d}
		_, err := r.get(t.Context(), "http://h/object", Options{})
		r.fails(err, Server, "one link")
		r.holds()
	})
	t.Run("R210 an app's file", func(t *testing.T) {
		d.sound = 100_000
		f, err := os.Create(t.TempDir() + "/f")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h := &OpenFile{File: f}
		g := &Getter{Transport: d}
		_, err = g.Fill(context.Background(), "http://h/object", h, NewMeter(), nil)
		info, serr := f.Stat()
		if err == nil || serr != nil || h.Have != d.sound || info.Size() != d.sound {
			t.Errorf("%v; %d bytes of %d", err, h.Have, info.Size())
		}
		b := make([]byte, d.sound)
		if _, err := f.ReadAt(b, 0); err != nil || !bytes.Equal(b, d.o.Bytes(0, d.sound)) {
			t.Errorf("other bytes, %v", err)
		}
	})
}
