package origin_test

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/link"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestIdleIsTold: the owner of the connection limits learns of open connections that are not used.
func TestIdleIsTold(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 5000})
	var mu sync.Mutex
	var told []string
	more := make(chan struct{}, 10)
	idle := func(name, addr string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, name+" "+addr)
		more <- struct{}{}
	}
	none := func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(told) > 0 {
			t.Errorf("told %q of a connection in use", told)
		}
	}
	one := func() {
		t.Helper()
		<-more
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"w0 " + s.Addr(0)}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		told = nil
	}
	p := newPool(dialNodes(s), nil)
	p.Idle = idle
	t.Cleanup(p.Close)
	r := &rig{t, s, p}
	c := r.open(0)
	r.send(c, whole(r))
	if _, err := io.Copy(io.Discard, r.next(c).Body); err != nil {
		t.Fatal(err)
	}
	none()
	c.Release()
	one()

	over := dialNodes(s).Over(links...)
	through := direct.NewPassThrough(func() []link.Link { return over }, nil, time.Minute)
	t.Cleanup(through.Close)
	through.Idle = idle
	q, err := http.NewRequestWithContext(t.Context(), "GET", s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := through.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	one()
}
