package get

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

func TestGet(t *testing.T) {
	t.Run("both links", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
		r := newRig(t, toNodes(s), nil)
		res, err := r.get(t.Context(), s.URL(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
		r.bothCarried(res)
		if res.File != r.path("object") || res.Size != mid || res.Resumed != 0 || res.Took <= 0 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("no ranges", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.NoRanges())
		r := newRig(t, toNodes(s), nil)
		if _, err := r.get(t.Context(), s.URL(), Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("unknown length, no validator", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.InChunks(), origintest.NoRanges(), origintest.NoValidator())
		r := newRig(t, toNodes(s), nil)
		if _, err := r.get(t.Context(), s.URL(), Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("R252 a URL that is valid once", func(t *testing.T) {
		once := origintest.AfterRequests(1, origintest.Status(403))
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced), once)
		r := newRig(t, toNodes(s), nil)
		if _, err := r.get(t.Context(), s.URL()+"?token=1", Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("empty", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{})
		r := newRig(t, toNodes(s), nil)
		if _, err := r.get(t.Context(), s.URL(), Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("standard output", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		var out bytes.Buffer
		res, err := r.get(t.Context(), s.URL(), Options{Output: "-", Stdout: &out})
		if err != nil || res.File != "-" {
			t.Fatalf("%+v, %v", res, err)
		}
		if out.Len() != mid || s.Object().Mismatch(out.Bytes(), 0) >= 0 {
			t.Errorf("%d bytes, not the object's", out.Len())
		}
		r.holds()
	})
	t.Run("a device takes the bytes as they come", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		if _, err := r.get(t.Context(), s.URL(), Options{Output: os.DevNull, Force: true}); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(os.DevNull); err != nil || st.Mode().IsRegular() {
			t.Errorf("%v, %v", st, err)
		}
		r.holds()
	})
	for _, fault := range []origintest.Fault{origintest.Gzip(), origintest.LoginPage()} {
		t.Run("what was not wanted is told", func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: mid}, fault)
			r := newRig(t, toNodes(s), nil)
			h := http.Header{"Accept-Encoding": {"gzip"}}
			if _, err := r.get(t.Context(), s.URL(), Options{Header: h, Output: "a.iso"}); err != nil || len(r.notes) != 1 {
				t.Errorf("%v, %q", err, r.notes)
			}
		})
	}
	t.Run("each link looks like curl", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
		r := newRig(t, toNodes(s), nil)
		h, err := Fields([]string{"X-Key: a", "x-key: b", "Accept:"}, "tributary/9")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.get(t.Context(), s.URL(), Options{Header: h}); err != nil {
			t.Fatal(err)
		}
		for _, q := range s.Requests() {
			if q.Header.Get("User-Agent") != "tributary/9" || fmt.Sprint(q.Header["X-Key"]) != "[a b]" ||
				q.Header.Get("Accept-Encoding") != "identity" || q.Header["Accept"] != nil {
				t.Errorf("%s", q.Raw)
			}
		}
	})
}

func TestHTTPS(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %v", h2), func(t *testing.T) {
			o := origintest.Object{Size: mid}
			s, roots := secure(t, h2, serveObject(o))
			r := newRig(t, straight, roots)
			res, err := r.get(t.Context(), s.URL+"/object", Options{})
			if err != nil {
				t.Fatal(err)
			}
			r.isObject("object", o)
			r.bothCarried(res)
		})
	}
	t.Run("R171 a certificate that nobody vouches for", func(t *testing.T) {
		s, _ := secure(t, true, serveObject(origintest.Object{Size: mid}))
		r := newRig(t, straight, nil)
		_, err := r.get(t.Context(), s.URL+"/object", Options{})
		r.fails(err, Trust, "--cacert")
		r.holds()
	})
	t.Run("R171 a certificate for another host", func(t *testing.T) {
		s, roots := secure(t, true, serveObject(origintest.Object{Size: mid}))
		to := s.Listener.Addr().String()
		r := newRig(t, func(l link.Link, _ string) string { return to }, roots)
		_, err := r.get(t.Context(), "https://other.test/object", Options{})
		r.fails(err, Trust, "other.test")
	})
	t.Run("no TLS there", func(t *testing.T) {
		s := httptest.NewServer(http.NotFoundHandler())
		defer s.Close()
		r := newRig(t, straight, nil)
		_, err := r.get(t.Context(), strings.Replace(s.URL, "http:", "https:", 1), Options{})
		r.fails(err, Trust, "check the scheme and the port")
	})
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		status int
		want   string
	}{
		{http.StatusNotFound, "404 Not Found: check the URL"},
		{http.StatusUnauthorized, "--header"},
		{http.StatusForbidden, "403 Forbidden"},
		{http.StatusServiceUnavailable, "try again later"},
		{http.StatusNotModified, "304"},
		{http.StatusNoContent, "204"},
	} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: mid}, origintest.Status(tt.status))
			r := newRig(t, toNodes(s), nil)
			_, err := r.get(t.Context(), s.URL(), Options{})
			r.fails(err, Server, tt.want)
			r.holds()
		})
	}
	t.Run("206 unasked", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.Always206(5000, 6000))
		r := newRig(t, toNodes(s), nil)
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, Server, "a part of the file (206)", "another server")
		r.holds()
	})
}

func TestFiles(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	never := func(t *testing.T) *rig {
		return newRig(t, func(link.Link, string) string { t.Error("connected"); return "127.0.0.1:1" }, nil)
	}
	t.Run("a file that exists is left alone", func(t *testing.T) {
		r := never(t)
		r.write("object", []byte("mine"))
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, File, "exists", "--force")
		if b, _ := os.ReadFile(r.path("object")); string(b) != "mine" {
			t.Errorf("%q", b)
		}
		r.holds("object")
	})
	t.Run("force replaces it", func(t *testing.T) {
		r := newRig(t, toNodes(s), nil)
		r.write("object", []byte("old"))
		if _, err := r.get(t.Context(), s.URL(), Options{Force: true}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("it is there when it is complete, not before", func(t *testing.T) {
		r := newRig(t, toNodes(s), nil)
		_, err := r.get(t.Context(), s.URL(), Options{Checksum: checksum(t, "sha256:"+strings.Repeat("00", 32))})
		r.fails(err, Mismatch)
		r.holds("object.part")
	})
	t.Run("a file that appears meanwhile is left alone", func(t *testing.T) {
		var r *rig
		s := origintest.New(t, origintest.Object{Size: mid}, func(*origintest.Exchange) { r.write("object", []byte("mine")) })
		r = newRig(t, toNodes(s), nil)
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, File, "meanwhile", "--resume")
		if b, _ := os.ReadFile(r.path("object")); string(b) != "mine" {
			t.Errorf("%q", b)
		}
		r.holds("object", "object.part")
		if _, err := r.get(t.Context(), s.URL(), Options{Resume: true, Force: true}); err != nil {
			t.Error(err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("no such folder", func(t *testing.T) {
		r := never(t)
		_, err := r.get(t.Context(), s.URL(), Options{Output: "none/object"})
		r.fails(err, File, "mkdir -p", filepath.Join(r.dir, "none"))
	})
	t.Run("a folder that is made", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		if _, err := r.get(t.Context(), s.URL(), Options{Dir: "new/folder"}); err != nil {
			t.Fatal(err)
		}
		r.dir = r.path("new/folder")
		r.isObject("object", s.Object())
	})
	t.Run("the time of Last-Modified", func(t *testing.T) {
		old, ahead := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), time.Now().Add(48*time.Hour)
		for _, at := range []time.Time{old, ahead} {
			s := origintest.New(t, origintest.Object{Size: mid}, origintest.Set("Last-Modified", at.UTC().Format(http.TimeFormat)))
			r := newRig(t, toNodes(s), nil)
			if _, err := r.get(t.Context(), s.URL(), Options{Dated: true}); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(r.path("object"))
			if err != nil || info.ModTime().Equal(old) != (at == old) || info.ModTime().After(time.Now()) {
				t.Errorf("%v: %v, %v", at, info, err)
			}
		}
	})
	t.Run("a complete file with --resume", func(t *testing.T) {
		r := never(t)
		r.write("object", []byte("mine"))
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		if err != nil || !res.Already || res.Size != 4 || res.File != r.path("object") {
			t.Errorf("%+v, %v", res, err)
		}
		sum, err := ParseChecksum("sha256:" + strings.Repeat("0", 64))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.get(t.Context(), s.URL(), Options{Resume: true, Checksum: sum})
		r.fails(err, Mismatch, "--force")
		r.write("object.part", []byte("x")) // which of them is it?
		_, err = r.get(t.Context(), s.URL(), Options{Resume: true})
		r.fails(err, File, "exists")
		r.holds("object", "object.part")
	})
	t.Run("a folder of that name", func(t *testing.T) {
		r := never(t)
		if err := os.Mkdir(r.path("object"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := r.get(t.Context(), s.URL(), Options{Force: true})
		r.fails(err, File, "is a folder")
	})
	t.Run("a long name", func(t *testing.T) {
		r := never(t)
		_, err := r.get(t.Context(), s.URL(), Options{Output: strings.Repeat("n", 300)})
		r.fails(err, File, "too long", "-o")
	})
	t.Run("no permission", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write everywhere")
		}
		r := never(t)
		if err := os.Chmod(r.dir, 0o555); err != nil {
			t.Fatal(err)
		}
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, Permission, "-d or -o")
	})
	t.Run("a .part that is a symbolic link", func(t *testing.T) {
		r := never(t)
		r.write("mine", []byte("mine"))
		if err := os.Symlink("mine", r.path("object.part")); err != nil {
			t.Fatal(err)
		}
		_, err := r.get(t.Context(), s.URL(), Options{Force: true})
		r.fails(err, File, "symbolic link")
		if b, _ := os.ReadFile(r.path("mine")); string(b) != "mine" {
			t.Errorf("%q", b)
		}
	})
	t.Run("two downloads of one file", func(t *testing.T) {
		gate := make(chan struct{})
		held := origintest.New(t, origintest.Object{Size: mid}, origintest.StallAfter(threshold/2, gate))
		r := newRig(t, toNodes(held), nil)
		done := make(chan error)
		go func() {
			g := &Getter{Transport: r.transport, Options: Options{Dir: r.dir}}
			_, err := g.Get(t.Context(), held.URL(), NewMeter())
			done <- err
		}()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for held.Accepted() == 0 { // the download locks its .part before it connects
			<-tick.C
		}
		for _, o := range []Options{{}, {Resume: true}, {Force: true}} {
			_, err := r.get(t.Context(), held.URL(), o)
			r.fails(err, File, ".part")
		}
		close(gate)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.isObject("object", held.Object())
	})
}

func checksum(t *testing.T, s string) *Checksum {
	t.Helper()
	c, err := ParseChecksum(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
