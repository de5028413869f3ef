package cli

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// scripted is a Transport that answers each URL path with its status, and with the path as content.
type scripted struct {
	mu       sync.Mutex
	requests []*http.Request
	status   map[string]int
	then     func() // called halfway through the content
	header   http.Header
	answered func(requests int)
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	path := r.URL.RequestURI()
	status, ok := s.status[path]
	switch {
	case !ok:
		status = http.StatusOK
	case status == 0:
		return nil, transport.ErrNoLink
	}
	transport.OptionsOf(r.Context()).Usage.Add("wifi", 1, 0)
	header := http.Header{"Etag": {`"v"`}}
	maps.Copy(header, s.header)
	if s.answered != nil {
		s.answered(len(s.requests))
	}
	return &http.Response{
		StatusCode: status, Header: header, ContentLength: int64(len(path)), Body: &content{s: path, then: s.then},
	}, nil
}

func (s *scripted) Status() transport.Status {
	return transport.Status{Links: []engine.LinkStatus{{Name: "wifi", State: "suspect", Reason: "silence"}, {Name: "lte", State: "up"}}}
}

type content struct {
	s    string
	then func()
}

func (c *content) Read(p []byte) (int, error) { return strings.NewReader(c.s).Read(p) }

func (c *content) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, c.s[:1])
	if err == nil && c.then != nil {
		c.then()
		return int64(n), context.Canceled
	}
	var m int
	if err == nil {
		m, err = io.WriteString(w, c.s[1:])
	}
	return int64(n + m), err
}

func (c *content) Close() error { return nil }

// fetched holds the arguments of a command's downloads.
type fetched struct {
	cfg   config.Config
	roots *x509.CertPool
}

// invokeGet runs get with a scripted engine.
func invokeGet(t *testing.T, e *scripted, args ...string) (f fetched, code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		version: "v9", rawStdout: &out, rawStderr: &errs, getenv: func(string) string { return "" },
		fetch: func(
			ctx context.Context, cfg config.Config, roots *x509.CertPool, _ *slog.Logger, do func(context.Context, http.RoundTripper) error,
		) error {
			f = fetched{cfg, roots}
			return do(ctx, e)
		},
	}
	code = a.run(t.Context(), append([]string{"get"}, args...))
	listed(t, code, "get")
	return f, code, out.String(), errs.String()
}

func TestGetExitCodes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := func() *scripted {
		return &scripted{status: map[string]int{"/404": 404, "/nolink": 0}}
	}
	for _, c := range []struct {
		args string
		code int
		want string // on stderr
	}{
		{"http://h/new", exitOK, "new: 4 B in"},
		{"--quiet http://h/quiet", exitOK, ""},
		{"http://h/nolink", int(get.Network), "no usable link"},
		{"http://h/404", int(get.Server), "404 Not Found"},
		{"http://h/old", int(get.File), "--force"},
		{"-o none/x http://h/x", int(get.File), "mkdir -p"},
		{"-sSfL# http://h/curl", exitOK, ""},
		{"--resume http://h/old", exitOK, "complete already"},
		{"--resume http://h/old http://h/other http://h/404", int(get.Server), "1 of 3 downloads failed"},
		{"-j 3 http://h/j1 http://h/404 http://h/j2", int(get.Server), "1 of 3 downloads failed"},
		{"http://h/dir/same http://h/same", exitUsage, "would both be saved as same"},
		{"-i /none", exitUsage, "-i: open /none"},
		{"-j 0 http://h/a", exitUsage, "-j 1 or more"},
		{"--limit-rate x http://h/a", exitUsage, "20Mbit/s"},
		{"--limit-rate 1M http://h/limited", exitOK, "limited: 8 B in"},
		{"--checksum sha256:" + strings.Repeat("0", 64) + " http://h/sum", int(get.Mismatch), "the checksum is"},
		{"ftp://h/", exitUsage, "only http and https"},
		{"http://h/404 http://h/nolink http://h/third", int(get.Server), "2 of 3 downloads failed"},
		{"-o x http://h/a http://h/b", exitUsage, "-d"},
		{"--checksum sha256:00 http://h/a http://h/b", exitUsage, "one by one"},
		{"--checksum sha256:00 http://h/a", exitUsage, "64 hexadecimal digits"},
		{"-o - --json http://h/a", exitUsage, "choose one"},
		{"-o - --resume http://h/a", exitUsage, "cannot be resumed"},
		{"-o x -O http://h/a", exitUsage, "-O"},
		{"-H X http://h/a", exitUsage, "Name: value"},
		{"-H Range:x http://h/a", exitUsage, "Range"},
		{"--cacert /none http://h/a", exitUsage, "--cacert"},
		{"--link a/b http://h/a", exitUsage, "interface name"},
		{"--link a --except a http://h/a", exitUsage, "exclude each other"},
		{"--except a http://h/except", exitOK, "except: 7 B in"},
		{"--max-links -1 http://h/a", exitUsage, "0 or more"},
		{"", exitUsage, "--help"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := append([]string{"-d", dir}, strings.Fields(c.args)...)
			_, code, stdout, stderr := invokeGet(t, e(), args...)
			if code != c.code || !strings.Contains(stderr, c.want) || c.want == "" && stderr != "" || stdout != "" {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q, want %q", code, c.code, stdout, stderr, c.want)
			}
		})
	}
	for code, kind := range map[int]get.Kind{ // as in the help
		4: get.Permission, 5: get.Network, 6: get.Server, 7: get.Trust, 8: get.File, 9: get.Mismatch,
	} {
		if got := exitCode(fmt.Errorf("x: %w", &get.Error{Kind: kind, Err: errors.New("y")})); got != code {
			t.Errorf("kind %d: %d, want %d", kind, got, code)
		}
	}
}

func TestGetFlags(t *testing.T) {
	dir := t.TempDir()
	e := &scripted{}
	f, code, _, stderr := invokeGet(t, e, "-d", dir, "--link", "wlan0", "-H", "X: a, b", "-H", "X: c", "http://u:p@h:81/a?b")
	want := config.Default()
	want.Links, want.LogLevel = []string{"wlan0"}, "warn"
	if code != exitOK || !reflect.DeepEqual(f.cfg, want) || f.roots != nil {
		t.Errorf("exit code %d, %s, %+v", code, stderr, f)
	}
	r := e.requests[0]
	if r.Method != http.MethodGet || r.URL.String() != "http://h:81/a?b" || r.Host != "" {
		t.Errorf("%+v", r)
	}
	if got := r.Header; got.Get("User-Agent") != "tributary/v9" || !reflect.DeepEqual(got["X"], []string{"a, b", "c"}) ||
		got.Get("Authorization") != "Basic dTpw" || got.Get("Accept-Encoding") != "identity" {
		t.Errorf("%v", got)
	}
	e = &scripted{}
	if _, code, _, stderr = invokeGet(t, e, "-d", dir, "-A", "", "http://h/b"); code != exitOK || e.requests[0].Header["User-Agent"] != nil {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	file := filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, code, _, stderr = invokeGet(t, e, "-d", dir, "--cacert", file, "http://h/c"); code != exitOK || f.roots == nil {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestGetFolders(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	list := "# two\n\nhttp://h/1\n  http://h/2  \n"
	if err := os.WriteFile("list", []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"-o new/ http://h/a": {"new/a"}, "-o . http://h/b http://h/c": {"b", "c"}, "-d deep/er -o x http://h/d": {"deep/er/x"}, "-d in -i list": {"in/1", "in/2"},
	} {
		if _, code, _, stderr := invokeGet(t, &scripted{}, strings.Fields(args)...); code != exitOK {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
		for _, file := range want {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		}
	}
}

// TestGetRetry: temporary errors are tried again after growing waits, or as long as the server asks.
func TestGetRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		e := &scripted{status: map[string]int{"/busy": 503, "/404": 404}, header: http.Header{"Retry-After": {"30"}}}
		e.answered = func(n int) {
			if n == 3 {
				e.status = nil
			}
		}
		began := time.Now()
		_, code, _, stderr := invokeGet(t, e, "-d", dir, "--retry", "4", "http://h/busy")
		if took := time.Since(began); code != exitOK || len(e.requests) != 4 || took != 90*time.Second || !strings.Contains(stderr, "again in 30s (1 of 4)") {
			t.Errorf("exit code %d, %d requests, %v: %s", code, len(e.requests), took, stderr)
		}
		e = &scripted{status: map[string]int{"/other": 503, "/404": 404}}
		began = time.Now()
		_, code, _, _ = invokeGet(t, e, "-d", dir, "--retry", "2", "http://h/other")
		if took := time.Since(began); code != int(get.Server) || len(e.requests) != 3 || took != 3*time.Second {
			t.Errorf("exit code %d, %d requests, %v", code, len(e.requests), took)
		}
		if _, code, _, _ = invokeGet(t, e, "-d", dir, "--retry", "2", "http://h/404"); code != int(get.Server) || len(e.requests) != 4 {
			t.Errorf("a missing file: exit code %d, %d requests", code, len(e.requests))
		}
	})
}

// TestLines: without bars, get writes a line of progress every ten seconds.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := get.NewMeter()
		l := newLines(&console{plain: &out}, m, &scripted{})
		time.Sleep(25 * time.Second)
		l.close()
		if got := out.String(); strings.Count(got, "connecting: 0 B, 0.0 Mbit/s\n") != 2 {
			t.Errorf("%q", got)
		}
	})
}

func TestLimitRate(t *testing.T) {
	for s, want := range map[string]float64{"8Mbit/s": 1e6, "2M": 2 << 20, "100k": 100 << 10, "1.5G": 3 << 29, "500": 500} {
		if got, err := limitRate(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "x", "MM", "1MM", "NaN", "inf"} {
		if got, err := limitRate(s); err == nil {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func TestGetJSON(t *testing.T) {
	dir := t.TempDir()
	e := &scripted{status: map[string]int{"/404": 404}}
	_, code, stdout, stderr := invokeGet(t, e, "-d", dir, "--json", "http://u:secret@h/ok", "http://h/404")
	if code != int(get.Server) || strings.Contains(stdout+stderr, "secret") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	var got [2]getJSON
	d := json.NewDecoder(strings.NewReader(stdout))
	for i := range got {
		if err := d.Decode(&got[i]); err != nil {
			t.Fatalf("%v: %q", err, stdout)
		}
	}
	ok, no := got[0], got[1]
	if ok.URL != "http://u:xxxxx@h/ok" || ok.File != filepath.Join(dir, "ok") || ok.Size != 3 || ok.ExitCode != 0 || ok.Error != "" ||
		!reflect.DeepEqual(ok.Links, []linkJSON{{Name: "wifi", Bytes: 1}}) {
		t.Errorf("%+v", ok)
	}
	if no.ExitCode != int(get.Server) || !strings.Contains(no.Error, "404") {
		t.Errorf("%+v", no)
	}
}

func TestGetSignals(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			ctx, stopped := context.WithCancel(t.Context())
			defer stopped()
			e := &scripted{}
			var out, errs bytes.Buffer
			a := &app{
				version: "v9", rawStdout: &out, rawStderr: &errs, getenv: func(name string) string { return map[string]string{"HOME": dir}[name] },
				fetch: func(
					ctx context.Context, _ config.Config, _ *x509.CertPool, _ *slog.Logger, do func(context.Context, http.RoundTripper) error,
				) error {
					e.then = func() {
						for range 2 { // as timeout(1) does
							interrupt(t, sig)
							<-ctx.Done()
						}
					}
					return do(ctx, e)
				},
			}
			code := a.run(ctx, []string{"get", "-d", dir, "http://h/object", "http://h/never"})
			if code != want || !strings.Contains(errs.String(), "--resume") || !strings.Contains(errs.String(), "1 of 2 downloads failed, 1 not started") ||
				len(e.requests) != 1 {
				t.Errorf("exit code %d, %q, %d requests", code, errs.String(), len(e.requests))
			}
			if _, err := os.Stat(filepath.Join(dir, "object.part")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDisplay(t *testing.T) {
	t.Run("frame", func(t *testing.T) {
		f := frame{
			file: "/a/" + strings.Repeat("x", 40), have: 25e6, size: 50e6, rate: 5e6,
			each: []linkFrame{{"wifi", "up", 15e6, 3e6}, {"lte", "banned (silence)", 1e6, 0}},
		}
		if got, want := f.sum(), " 25.0 MB of 50.0 MB, 40.0 Mbit/s, 6s left"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if n := len([]rune(f.title())); n != maxTitle+1 {
			t.Errorf("%q", f.title())
		}
		for _, want := range []string{"wifi", "24.0 Mbit/s", "15.0 MB  up\n", "banned (silence)\n"} {
			if !strings.Contains(f.links(), want) {
				t.Errorf("%q lacks %q", f.links(), want)
			}
		}
		f.size = -1
		if got, want := f.sum(), " 25.0 MB, 40.0 Mbit/s"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("links", func(t *testing.T) {
		s := &scripted{}
		m := get.NewMeter()
		all := newSpeeds(m, s)
		if _, err := (&get.Getter{Transport: s, Options: get.Options{Output: "-", Stdout: io.Discard}}).Get(t.Context(), "http://h/a", m); err != nil {
			t.Fatal(err)
		}
		want := []linkFrame{{"wifi", "suspect (silence)", 1, 0}, {"lte", "up", 0, 0}}
		if got := all.look(time.Now()).each; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
		bare := newSpeeds(m, struct{ http.RoundTripper }{s}) // reports no states
		if got := bare.look(time.Now()).each; !reflect.DeepEqual(got, []linkFrame{{"wifi", "", 1, 0}}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("gauge", func(t *testing.T) {
		var g gauge
		now := time.Unix(0, 0)
		for i := range 20 {
			rate := g.at(now.Add(time.Duration(i)*time.Second), int64(i)*1000)
			if want := 1000.0; i > 0 && rate != want {
				t.Errorf("after %d s: %v", i, rate)
			}
		}
		if rate := g.at(now.Add(100*time.Second), 0); rate != 0 || len(g.samples) != 1 {
			t.Errorf("after a new start: %v, %d samples", rate, len(g.samples))
		}
	})
	t.Run("lines above bars", func(t *testing.T) {
		var out bytes.Buffer
		c := &console{plain: &printable{to: &out}, raw: &out}
		d := newDisplay(c, get.NewMeter(), &scripted{})
		fmt.Fprintln(c, "a line"+title)
		d.close()
		fmt.Fprintln(c, "another")
		if strings.Contains(out.String(), title[:4]) {
			t.Errorf("%q", &out)
		}
		for _, want := range []string{"a line" + shown(title) + "\n", "another\n", "wifi"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q lacks %q", out.String(), want)
			}
		}
	})
}

func TestGetDeadlineFlags(t *testing.T) {
	for _, args := range [][]string{{"--bitrate", "fast"}, {"--bitrate", "0"}, {"--within", "-1s"}, {"--within", "1s", "--bitrate", "4Mbit/s"}, {"--goal", "thirsty"}} {
		if code, _, stderr := invoke(t, noServe, append([]string{"get", "http://example.com/x"}, args...)...); code != exitUsage {
			t.Errorf("%q: %d, %s", args, code, stderr)
		}
	}
}
