package systemtest

import (
	"io"
	"net/http"
	"sync"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestWholeCopy: the first request is late, so a copy of it is sent over another link, whose node ignores ranges. The version is the
// same, but its bytes begin elsewhere.
func TestWholeCopy(t *testing.T) {
	t.Run("R202 a copy brings the whole object in place of the client's range", func(t *testing.T) {
		const from = 10_778
		copied, answered, read := make(chan struct{}), make(chan struct{}), make(chan struct{})
		begin, end, finish := sync.OnceFunc(func() { close(copied) }), sync.OnceFunc(func() { close(answered) }), sync.OnceFunc(func() { close(read) })
		for _, f := range []func(){begin, end, finish} {
			t.Cleanup(f)
		}
		s := New(t, Object{Size: mid},
			OnNode(0, func(*Exchange) { <-copied }, StallAfter(1000, read)),
			OnNode(1, func(*Exchange) { begin(); <-answered }, IgnoresRange()))
		r := newRig(t, s, settings(), "wifi", "lte")
		resp, err := client(t, r.url).Do(request(t.Context(), s.URL(), get("Range", "bytes=10778-")))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		end()
		begun := make([]byte, 1000)
		if _, err := io.ReadFull(resp.Body, begun); err != nil {
			t.Fatal(err)
		}
		until(t, "the copy is dropped", limit, func() bool { return len(s.Requests()) > 2 })
		finish()
		got, err := io.ReadAll(resp.Body)
		got = append(begun, got...)
		if want := s.Object().Bytes(from, mid); err != nil || resp.StatusCode != http.StatusPartialContent || string(got) != string(want) {
			t.Errorf("%d, %d bytes, %v; want the %d bytes of the range", resp.StatusCode, len(got), err, len(want))
		}
	})
}
