package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

const gzipPort = 8220

// TestCurl covers common uses of curl; each answer must equal the direct one, head and body.
func TestCurl(t *testing.T) {
	r := start(t, quick())
	o := r.object(5_000_000)
	url := r.nginx.NamedURL(o)
	for name, args := range map[string][]string{
		"HTTP/1.0": {"--http1.0", url},
		"HTTP/1.1": {"--http1.1", url},
		"-r":       {"-r", "1000000-3999999", url},
		"-I":       {"-I", "-o", "/dev/null", url},
	} {
		t.Run(name, func(t *testing.T) { r.on(t).same(args...) })
	}
	t.Run("-C -", func(t *testing.T) {
		r := r.on(t)
		r.downloads(o, func(proxy, file string) {
			r.write(file, r.content(o.Size)[:2_000_001])
			r.ok(r.viaEnv(proxy, "curl", "-sS", "--fail", "-C", "-", "-o", file, url))
		})
	})
	t.Run("--compressed", func(t *testing.T) {
		r := r.on(t)
		gzip, err := r.lab.StartNginx(r.ctx, netlab.NginxOptions{
			Port: gzipPort, Directives: "gzip on; gzip_types *; gzip_min_length 1; gzip_comp_level 1;",
		})
		if err != nil {
			t.Fatal(err)
		}
		defer gzip.Stop()
		coded, err := gzip.Object(o.Size)
		if err != nil {
			t.Fatal(err)
		}
		r.same("--compressed", coded.URL)
		r.same("--header", "Accept-Encoding: gzip", coded.URL) // the body stays encoded
	})
}

// TestUploads sends 50 MB with a length and 5 MB in chunks; the origin echoes them.
func TestUploads(t *testing.T) {
	r := start(t, quick())
	url := r.serveHTTP(8221, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := sha256.New()
		if _, err := io.Copy(h, req.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, req.Method+" "+hex.EncodeToString(h.Sum(nil)))
	}))
	for _, tt := range []struct {
		name, method string
		size         netlab.Bytes
		args         []string
	}{
		{"-T 50 MB", http.MethodPut, 50_000_000, []string{"-T"}},
		{"chunked POST", http.MethodPost, 5_000_000, []string{"-X", "POST", "-H", "Transfer-Encoding: chunked", "-T"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := r.on(t)
			body, file := r.content(tt.size), r.file()
			r.write(file, body)
			defer os.Remove(file)
			c := r.ok(r.curl(slices.Concat([]string{"--fail"}, tt.args, []string{file, url})...))
			if got, want := string(c.body), tt.method+" "+sum(body); got != want {
				t.Errorf("the origin got %s, want %s", got, want)
			}
		})
	}
}
