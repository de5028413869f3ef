package cutoff

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// TestShow: what a client sees at the end of its connection.
func TestShow(t *testing.T) {
	begun := make(chan *http.Request, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 5000))
		_ = http.NewResponseController(w).Flush()
		switch r.URL.Path {
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/close":
			begun <- r
			<-r.Context().Done()
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	Show(s.Config)
	secure := httptest.NewUnstartedServer(s.Config.Handler)
	secure.Config.ErrorLog, secure.Config.ConnContext = s.Config.ErrorLog, s.Config.ConnContext
	s.Start()
	defer s.Close()
	secure.StartTLS()
	defer secure.Close()
	ask := func(t *testing.T, by *httptest.Server, line string) (int, error) {
		t.Helper()
		nc, err := net.Dial("tcp", by.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if by == secure {
			nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own server
		}
		if _, err := io.WriteString(nc, line+"\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "/close") {
			<-begun
			go by.CloseClientConnections()
		}
		b, err := io.ReadAll(resp.Body)
		return len(b), err
	}
	for _, c := range []struct {
		name, line string
		by         *httptest.Server
		want       error
	}{
		{"R49 HTTP/1.0, the handler gives up", "GET /panic HTTP/1.0", s, syscall.ECONNRESET},
		{"R49 HTTP/1.0, the server is closed", "GET /close HTTP/1.0", s, syscall.ECONNRESET},
		{"R49 HTTP/1.0 in TLS, the handler gives up", "GET /panic HTTP/1.0", secure, syscall.ECONNRESET},
		{"R49 HTTP/1.1, the handler gives up", "GET /panic HTTP/1.1", s, io.ErrUnexpectedEOF},
		{"HTTP/1.0", "GET / HTTP/1.0", s, nil},
		{"HTTP/1.0 in TLS", "GET / HTTP/1.0", secure, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := ask(t, c.by, c.line)
			if !errors.Is(err, c.want) || err == nil && n != 5000 {
				t.Errorf("%d bytes, %v; want %v", n, err, c.want)
			}
		})
	}
}
