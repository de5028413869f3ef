package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// title is a hostile server's text: it sets the window's title, clears the line and writes another one, with 7-bit and 8-bit escape
// sequences, and reverses text.
const title = "\x1b]0;owned\a\x1b[2K\r\u009b2K\x7f\u202e"

// harmless fails the test if text can make a terminal do more than write lines.
func harmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			t.Errorf("%U in %q", r, text)
			return
		}
	}
}

// over fetches over one link with a real Transport, which reaches the server at every address.
func over(t *testing.T, server string) func(
	context.Context, config.Config, *x509.CertPool, *slog.Logger, func(context.Context, http.RoundTripper) error,
) error {
	return func(
		ctx context.Context, _ config.Config, roots *x509.CertPool, log *slog.Logger, do func(context.Context, http.RoundTripper) error,
	) error {
		dial := func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server)
		}
		cfg := config.Default()
		cfg.Threshold, cfg.WaitForLink = 128<<10, 5*time.Second
		wifi := link.Link{Name: "wifi", Metric: 1, Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
		tr, err := transport.New(transport.Config{Settings: cfg, Log: log, Source: discover.NewStatic(link.DialFunc(dial).Over(wifi)...), Roots: roots})
		if err != nil {
			return err
		}
		defer tr.Close()
		stop, err := tr.Start(ctx)
		if err != nil {
			return err
		}
		defer stop()
		return do(ctx, tr)
	}
}

// TestHostileCertificate: a certificate is shown before it was verified.
func TestHostileCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"\x1b]0;owned\a\x1b[2K\r\x7f", "x\nbig.iso: 700.0 MB in 9.1 s"}, // ASCII, as its type is
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	defer s.Close()
	for _, urls := range [][]string{
		{"https://origin.test/big.iso"}, {"https://origin.test/big.iso", "https://origin.test/b"}, {"--log-level=debug", "https://origin.test/c"},
	} {
		var out, errs bytes.Buffer
		a := &app{
			version: "v9", rawStdout: &out, rawStderr: &errs, getenv: func(string) string { return "" }, fetch: over(t, s.Listener.Addr().String()),
		}
		code := a.run(t.Context(), append([]string{"get", "-d", t.TempDir()}, urls...))
		if code != int(get.Trust) || !strings.Contains(errs.String(), "origin.test") || !strings.Contains(errs.String(), "owned") {
			t.Errorf("exit code %d, %q", code, &errs)
		}
		harmless(t, errs.String()+out.String())
		for line := range strings.Lines(errs.String()) {
			if strings.Contains(line, "big.iso: 700.0 MB") && !strings.Contains(line, "x509") {
				t.Errorf("a line of the server's: %q", line)
			}
		}
	}
}

// TestHostileStatus: the user who runs the proxy controls the content of its status.
func TestHostileStatus(t *testing.T) {
	s := control.Status{
		Version: title, Listen: title, Links: []engine.LinkStatus{{Name: title, State: title, Reason: title}},
		Transfers: []engine.TransferStatus{{ID: 1, Links: []engine.LinkBytes{{Link: title}}}},
	}
	path := filepath.Join(t.TempDir(), "control.sock")
	proxyAt(t, path, s)
	for _, flag := range []string{"--once", "--json"} {
		code, out, errs := status(t, nil, "--control", path, flag)
		if code != 0 || errs != "" || !strings.Contains(out, "owned") {
			t.Errorf("%s: code %d, %q, %q", flag, code, out, errs)
		}
		harmless(t, out)
		if flag == "--json" {
			var got control.Status
			if err := json.Unmarshal([]byte(out), &got); err != nil || !reflect.DeepEqual(got, s) {
				t.Errorf("%v: %+v, not %+v", err, got, s)
			}
		}
	}
}

// TestHostileProcess: a process may have any name, which doctor also shows to other users.
func TestHostileProcess(t *testing.T) {
	const comm = "/proc/self/comm"
	old, err := os.ReadFile(comm)
	if err == nil {
		err = os.WriteFile(comm, []byte("\x1b]0;owned\a\x1b[2K"), 0)
	}
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = os.WriteFile(comm, bytes.TrimSpace(old), 0) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	serve := func(_ context.Context, c config.Config, _ *slog.Logger, _ daemon.Reloads) error {
		_, err := net.Listen("tcp", c.Listen)
		return err
	}
	code, _, errs := invoke(t, serve, "serve", "--listen", l.Addr().String())
	if want := fmt.Sprintf("process %d (", os.Getpid()); code != exitPortInUse || !strings.Contains(errs, want) || !strings.Contains(errs, "owned") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	harmless(t, errs)
	var out, derrs bytes.Buffer
	a := &app{
		version: "v9", rawStdout: &out, rawStderr: &derrs, getenv: func(string) string { return "" },
		candidates: func(config.Config) ([]discover.Candidate, *link.Resolver, error) { return nil, &link.Resolver{}, nil },
	}
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "listen = %q\nadmin = \"\"\n", l.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	if a.run(t.Context(), []string{"doctor", "--offline", "--config", file}); !strings.Contains(out.String(), "owned") {
		t.Errorf("%q, %q", &out, &derrs)
	}
	harmless(t, out.String()+derrs.String())
}

// canceler ends a context at the first write.
type canceler struct {
	text   bytes.Buffer
	cancel context.CancelFunc
}

func (c *canceler) Write(b []byte) (int, error) {
	c.cancel()
	return c.text.Write(b)
}

// TestHostilePage: the live page is drawn only with Tributary's own control sequences.
func TestHostilePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	proxyAt(t, path, control.Status{Version: title})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := &canceler{cancel: cancel}, &bytes.Buffer{}
	a := &app{version: "v9", rawStdout: out, rawStderr: errs, outTerminal: true, getenv: func(string) string { return "" }}
	if code := a.run(ctx, []string{"status", "--control", path}); code != exitOK || !strings.Contains(out.text.String(), "owned") {
		t.Errorf("exit code %d, %q, %q", code, &out.text, errs)
	}
	page, home := strings.CutPrefix(out.text.String(), "\x1b[H")
	page, end := strings.CutSuffix(page, "\x1b[J")
	if !home || !end {
		t.Errorf("%q", &out.text)
	}
	harmless(t, strings.ReplaceAll(page, "\x1b[K\n", "\n"))
}

// TestMainLogs: libraries write bytes from an origin to package log; none of them reach the terminal.
func TestMainLogs(t *testing.T) {
	defer log.SetOutput(log.Writer())
	if code := Main([]string{"version"}, "v9"); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if log.Writer() != io.Discard {
		t.Errorf("package log writes to a %T", log.Writer())
	}
}

// TestHostileNames: names that the user chose are shown safely, too, in the summary, the bars and JSON.
func TestHostileNames(t *testing.T) {
	name := filepath.Join(t.TempDir(), title+"\xff.iso")
	for _, flag := range []string{"--force", "--json"} {
		_, code, stdout, stderr := invokeGet(t, &scripted{}, "--force", flag, "-o", name, "http://h/a")
		if code != exitOK || !strings.Contains(stdout+stderr, "owned") {
			t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
		}
		if flag == "--json" {
			var got getJSON
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.File != strings.ToValidUTF8(name, "\ufffd") {
				t.Errorf("%v: %q", err, got.File)
			}
			stdout = strings.ReplaceAll(stdout, `\ufffd`, "")
		}
		harmless(t, stdout+stderr)
	}
	f := frame{file: "/a/" + title + ".iso", each: []linkFrame{{name: title, state: title}}}
	harmless(t, f.title()+f.links())
}

// TestRawOutput: the bytes of a file are written unchanged.
func TestRawOutput(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 10_000})
	var out, errs bytes.Buffer
	a := &app{version: "v9", rawStdout: &out, rawStderr: &errs, getenv: func(string) string { return "" }, fetch: over(t, s.Addr(0))}
	code := a.run(t.Context(), []string{"get", "-o", "-", s.URL()})
	if code != exitOK || out.Len() != 10_000 || s.Object().Mismatch(out.Bytes(), 0) >= 0 {
		t.Errorf("exit code %d, %d bytes, %q", code, out.Len(), &errs)
	}
}
