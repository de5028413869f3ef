package engine

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestLinkAppears lets a link appear while a transfer runs: the link helps, unless the request carries credentials and the link is
// not trusted.
func TestLinkAppears(t *testing.T) {
	for _, tt := range []struct {
		name      string
		h         http.Header
		untrusted bool
		helps     bool
	}{
		{"a link", http.Header{}, false, true},
		{"R205 an untrusted link, and no credentials", http.Header{}, true, true},
		{"R205 a trusted link, and credentials", http.Header{"Cookie": {"a=b"}}, false, true},
		{"R205 an untrusted link, and credentials", http.Header{"Cookie": {"a=b"}}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				e := newWorldEngine(t, w, nil)
				a := link.Link{Name: "a", Path: &worldPath{w, "a"}}
				e.SetLinks([]link.Link{a})
				resp, err := e.Get(t.Context(), &Request{Target: Target{Scheme: "http", Host: "o", Addr: "o:80", Path: "/"}, Header: tt.h})
				if err != nil {
					t.Fatal(err)
				}
				read := make(chan struct{})
				go func() {
					defer close(read)
					_, _ = resp.Body.WriteTo(io.Discard)
				}()
				time.Sleep(time.Second)
				e.SetLinks([]link.Link{a, {Name: "c", Terms: policy.Terms{Untrusted: tt.untrusted}, Path: &worldPath{w, "c"}}})
				<-read
				resp.Body.Close()
				if got := carried(e, "c"); (got > 0) != tt.helps {
					t.Errorf("it brought %d bytes", got)
				}
			})
		})
	}
}
