package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/trace"
)

// TestGetTrace: the file of --trace counts each byte of the body and more, by link and direction, even if the download fails.
func TestGetTrace(t *testing.T) {
	const size = 300_000
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/object" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(make([]byte, size))
	}))
	defer s.Close()
	dir := t.TempDir()
	for _, c := range []struct {
		path, file string
		code       int
		least      int64
		says       string
	}{
		{"/object", "a", exitOK, size, "object: 300.0 kB in"},
		{"/none", "b", int(get.Server), 50, "404"},
		{"/object2", "a", int(get.File), 0, "name a new file"},
		{"/object2", "none/a", int(get.File), 0, "--trace"},
		{"/object2", "-", exitUsage, 0, "--trace cannot write to standard output"},
	} {
		var out, errs bytes.Buffer
		a := &app{
			version: "v9", rawStdout: &out, rawStderr: &errs, getenv: func(string) string { return "" }, fetch: over(t, s.Listener.Addr().String()),
		}
		file := c.file
		if file != "-" {
			file = filepath.Join(dir, file)
		}
		code := a.run(t.Context(), []string{"get", "-d", dir, "--trace", file, "http://origin.test" + c.path})
		if code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, %q", c.path, code, &errs)
		}
		if c.least == 0 {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := trace.Read(f)
		f.Close()
		if err != nil || len(got.Links) != 1 || got.Links[0].Name != "wifi" {
			t.Errorf("%s: %+v, %v", c.path, got, err)
			continue
		}
		down, up := total(got.Links[0].Down), total(got.Links[0].Up)
		if down < c.least || down > c.least+2000 || up < 50 || up > 2000 {
			t.Errorf("%s: %d bytes down, %d up", c.path, down, up)
		}
	}
}

func total(all []int64) (sum int64) {
	for _, n := range all {
		sum += n
	}
	return sum
}
