package direct_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// paused serves answers that pause until release is closed. It reports each pause.
func paused(t *testing.T) (url string, began chan struct{}, release func()) {
	began = make(chan struct{})
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	wait := func() {
		began <- struct{}{}
		<-released
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/head":
			wait()
		case "/body":
			_, _ = w.Write(make([]byte, 1000))
			_ = http.NewResponseController(w).Flush()
			wait()
			_, _ = w.Write(make([]byte, 1000))
		case "/upload":
			_, _ = io.ReadFull(r.Body, make([]byte, 1000))
			wait()
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}))
	t.Cleanup(func() { release(); s.Close() })
	return s.URL, began, release
}

// TestLinkDies takes a link away from requests: they end at once, in whatever state they are, and those over another link continue.
func TestLinkDies(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		upload     bool
	}{
		{"before the answer", "/head", false},
		{"within the answer", "/body", false},
		{"within an upload", "/upload", true},
	} {
		for _, kept := range []bool{false, true} {
			for _, dies := range []string{"wifi", "eth"} {
				name := "R145 " + tt.name
				if kept {
					name += ", on a connection that was used before"
				}
				t.Run(name+", "+dies+" dies", func(t *testing.T) {
					url, began, release := paused(t)
					over := link.DialFunc(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
						return (&net.Dialer{}).DialContext(ctx, network, addr)
					}).Over(wifiEth...)
					p := direct.NewPassThrough(func() []link.Link { return over }, nil, 0)
					defer p.Close()
					do := func(path string, body io.Reader) error {
						r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, body)
						if body != nil {
							r.Method, r.ContentLength = http.MethodPut, -1
						}
						resp, _, err := p.Do(r)
						if err != nil {
							return err
						}
						_, err = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						return err
					}
					if kept {
						if err := do("/", nil); err != nil {
							t.Fatal(err)
						}
					}
					done, sent := make(chan error, 1), make(chan struct{})
					go func() {
						var body io.Reader
						if tt.upload {
							body = endless{sent}
						}
						done <- do(tt.path, body)
					}()
					<-began
					p.DropLink(dies)
					if dies == "eth" { // all went over wifi
						select {
						case err := <-done:
							t.Errorf("it ended with %v", err)
						default:
						}
						release()
						close(sent)
						if err := <-done; err != nil {
							t.Error(err)
						}
						return
					}
					err := <-done
					a, ok := errors.AsType[*engine.AttemptError](err)
					if !ok || a.Link != "wifi" || a.Outcome != fault.LinkLost {
						t.Errorf("it ended with %v", err)
					}
				})
			}
		}
	}
}

// endless is content that ends when it may.
type endless struct{ until <-chan struct{} }

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.until:
		return 0, io.EOF
	default:
		return len(p), nil
	}
}
