package control

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// handing serves a socket on which POSTs pass listeners; each answer lists the listeners that arrived.
func handing(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control", "s")
	l, err := Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ConnContext: ConnContext, Handler: handle}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	c := NewClient(path)
	t.Cleanup(c.Close)
	return c
}

// open returns a loopback listener as a file.
func open(t *testing.T) (*os.File, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, l.Addr().String()
}

// TestFilesConnRead: net/http panics if a reader returns a negative count, which ReadMsgUnix does when it fails.
func TestFilesConnRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control", "s")
	l, err := Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil { // the read starts to wait
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestRedirectHandsListenersOver(t *testing.T) {
	files := make(chan []*os.File, 1)
	said := make(chan Redirect)
	c := handing(t, func(w http.ResponseWriter, r *http.Request) {
		files <- Files(r.Context())
		for m := range said {
			_ = json.NewEncoder(w).Encode(m)
			_ = http.NewResponseController(w).Flush()
		}
	})
	a, addr := open(t)
	b, _ := open(t)
	surplus, _ := open(t)
	lease, err := func() (*Lease, error) {
		go func() { said <- Redirect{UID: 7, Links: []string{"wlan0"}} }()
		return c.Redirect(t.Context(), a, b, surplus)
	}()
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	got := <-files
	if len(got) != maxFiles {
		t.Fatalf("%d files arrived", len(got))
	}
	if r := lease.Next(); r.UID != 7 || len(r.Links) != 1 || r.Over {
		t.Errorf("%+v", r)
	}
	// The port stays open while one of the two has it.
	a.Close()
	l, err := net.FileListener(got[0])
	if err != nil || l.Addr().String() != addr {
		t.Fatalf("%v, %v", l, err)
	}
	for _, f := range got {
		f.Close()
	}
	served := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			_, err = io.WriteString(nc, "hello")
			nc.Close()
		}
		served <- err
	}()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if text, err := io.ReadAll(nc); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	l.Close()

	said <- Redirect{Links: []string{"wlan0", "wwan0"}}
	if r := lease.Next(); len(r.Links) != 2 || r.Over {
		t.Errorf("a change: %+v", r)
	}
	close(said)
	if r := lease.Next(); !r.Over {
		t.Errorf("the end: %+v", r)
	}
}

func TestRedirectIsRefused(t *testing.T) {
	c := handing(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no room", http.StatusServiceUnavailable) })
	f, _ := open(t)
	if _, err := c.Redirect(t.Context(), f); err == nil || err.Error() != "the running tributary: no room" {
		t.Errorf("%v", err)
	}
}
