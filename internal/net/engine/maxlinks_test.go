package engine

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
)

// TestMaxLinks: a request uses no more links at a time than it wants, and another one in place of a link that fails.
func TestMaxLinks(t *testing.T) {
	type step struct {
		do    func(w *costWorld)
		carry []string // links that deliver something afterwards
	}
	set := func(names ...string) func(*costWorld) { return func(w *costWorld) { w.set(names...) } }
	start := func(*costWorld) {}
	for _, tt := range []struct {
		name  string
		most  int
		begin func(w *costWorld)
		steps []step
	}{
		{"any number", 0, set("a", "b", "c"), []step{{start, []string{"a", "b", "c"}}}},
		{"one", 1, set("a", "b", "c"), []step{{start, []string{"a"}}}},
		{"two, the metered one last", 2, set("A", "b", "c"), []step{{start, []string{"b", "c"}}}},
		{"as many as there are", 5, set("a", "b"), []step{{start, []string{"a", "b"}}}},
		{"one goes, and comes back", 2, set("a", "b", "c"), []step{
			{start, []string{"a", "b"}},
			{set("b", "c"), []string{"b", "c"}},
			{set("a", "b", "c"), []string{"b", "c"}},
			{set("a", "c"), []string{"a", "c"}},
		}},
		{"one is silent", 1, set("a", "b", "c"), []step{
			{start, []string{"a"}},
			{func(w *costWorld) { w.change(func() { w.dead["a"] = true }) }, []string{"b"}},
			{func(w *costWorld) { w.change(func() { w.dead["a"] = false }) }, []string{"b"}},
		}},
		{"further ones appear", 2, set("a"), []step{{start, []string{"a"}}, {set("a", "b", "c"), []string{"a", "b"}}}},
		{"several come back at once", 2, set("a", "b", "c"), []step{
			{set("a"), []string{"a"}},
			{set("a", "b", "c"), []string{"a", "b"}},
		}},
		{"the first one does not reach the origin", 1, func(w *costWorld) {
			w.set("a", "b", "c")
			w.change(func() { w.shut["o.test:80"] = "a" })
		}, []step{{start, []string{"b"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCostWorld(t)
				tt.begin(w)
				resp, err := w.e.Get(t.Context(), &Request{
					Target: Target{Scheme: "http", Host: "o.test:80", Addr: "o.test:80", Path: "/"}, Header: http.Header{},
					Options: Options{Links: policy.Request{MaxLinks: tt.most}},
				})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					n, err := io.Copy(io.Discard, resp.Body)
					if err == nil && n != worldSize {
						err = errors.New("too short")
					}
					ended <- err
				}()
				for i, s := range tt.steps {
					s.do(w)
					time.Sleep(4 * time.Second) // a silent link is banned after 3 s
					before := map[string]int64{}
					for _, name := range []string{"a", "b", "c"} {
						before[name], _ = w.got(name)
					}
					time.Sleep(2 * time.Second)
					var carried []string
					for name, n := range before {
						if now, _ := w.got(name); now > n {
							carried = append(carried, name)
						}
					}
					slices.Sort(carried)
					if !slices.Equal(carried, s.carry) {
						t.Errorf("step %d: %v carry, want %v", i, carried, s.carry)
					}
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				resp.Body.Close()
			})
		})
	}
}
