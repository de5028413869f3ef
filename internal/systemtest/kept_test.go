package systemtest

import (
	"net/http"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestKeptConnections: a request that must not be repeated does not use a connection that another client left behind, which might be
// dead; a client's own connection is used again.
func TestKeptConnections(t *testing.T) {
	s := New(t, Object{Size: 1000})
	r := newRig(t, s, settings(), "wifi")
	first, second := client(t, r.url), client(t, r.url)
	for i, c := range []struct {
		by     *http.Client
		method string
		conn   int
	}{
		{first, http.MethodHead, 1},
		{first, http.MethodPost, 2},
		{first, http.MethodPost, 2},
		{second, http.MethodPost, 3},
		{second, http.MethodHead, 1},
		{first, http.MethodPost, 2},
	} {
		t.Run("R244 "+c.method, func(t *testing.T) {
			if got := fetchBy(c.by, c.method, s.URL(), nil); got.err != nil || got.status != http.StatusOK {
				t.Fatal(got)
			}
			if q := s.Requests()[i]; q.Conn != c.conn {
				t.Errorf("request %d is on connection %d, want %d", i+1, q.Conn, c.conn)
			}
		})
	}
}
