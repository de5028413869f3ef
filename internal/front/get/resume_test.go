package get

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// mortal is an origin that does not serve the second half of its object until it is well.
type mortal struct {
	*origintest.Server
	well atomic.Bool
}

// newMortal starts a mortal. The faults apply after its recovery.
func newMortal(t *testing.T, faults ...origintest.Fault) *mortal {
	return newDying(t, origintest.Status(500), faults...)
}

// newDying starts a mortal with the fault death in its second half.
func newDying(t *testing.T, death origintest.Fault, faults ...origintest.Fault) *mortal {
	m := &mortal{}
	late := func(q *origintest.Request) bool {
		var start int
		_, err := fmt.Sscanf(q.Range, "bytes=%d-", &start)
		return err == nil && start >= mid/2
	}
	sick := func(*origintest.Request) bool { return !m.well.Load() }
	// Short answers, so that none reaches from the first half into the second.
	m.Server = origintest.New(t, origintest.Object{Size: mid},
		origintest.If(sick, origintest.CapsRanges(32<<10), origintest.If(late, death)),
		origintest.If(func(q *origintest.Request) bool { return !sick(q) }, faults...))
	return m
}

// cut downloads until the origin dies and returns how many bytes are kept.
func (r *rig) cut(m *mortal, o Options) int64 {
	r.Helper()
	_, err := r.get(r.Context(), m.URL(), o)
	r.fails(err, Server, "object.part", "--resume")
	r.holds("object.part")
	part, err := os.ReadFile(r.path("object.part"))
	if err != nil || len(part) == 0 || m.Object().Mismatch(part, 0) >= 0 {
		r.Fatalf("%d bytes are kept, %v", len(part), err)
	}
	m.well.Store(true)
	return int64(len(part))
}

func TestResume(t *testing.T) {
	t.Run("R94 after a cut", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		kept := r.cut(s, Options{})
		seen := len(s.Requests())
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
		if res.Resumed != kept || res.Size != mid || len(r.notes) != 0 {
			t.Errorf("%+v after %d bytes; %q", res, kept, r.notes)
		}
		for _, q := range s.Requests()[seen:] {
			if q.Header.Get("If-Range") != `"v1"` || q.Range == "" {
				t.Errorf("R94: %s", q.Raw)
			}
		}
		if q := s.Requests()[seen]; !strings.HasPrefix(q.Range, fmt.Sprintf("bytes=%d-", kept)) {
			t.Errorf("asked for %q after %d bytes", q.Range, kept)
		}
	})
	again := func(name, note string, faults ...origintest.Fault) {
		t.Run(name, func(t *testing.T) {
			s := newMortal(t, faults...)
			r := newRig(t, toNodes(s.Server), nil)
			r.cut(s, Options{})
			res, err := r.get(t.Context(), s.URL(), Options{Resume: true})
			if err != nil {
				t.Fatal(err)
			}
			now := &origintest.Exchange{Object: s.Object(), Request: &origintest.Request{}}
			for _, f := range faults {
				f(now)
			}
			r.isObject("object", now.Object)
			if res.Resumed != 0 || len(r.notes) != 1 || !strings.Contains(r.notes[0], note) {
				t.Errorf("%+v, %q", res, r.notes)
			}
		})
	}
	again("another version", "changed", origintest.NewVersion())
	again("R204 another version, If-Range ignored", "changed", origintest.NewVersion(), origintest.IgnoresIfRange())
	again("R96 another size", "changed", origintest.Truncated(threshold))
	again("ranges no longer", "cannot resume", origintest.NoRanges())
	again("R96 another start", "another part", origintest.WrongStart(5))
	again("R96 no Content-Range", "another part", origintest.NoContentRange())
	again("no validator any more", "changed", origintest.NoValidator())

	t.Run("nothing is kept without a validator", func(t *testing.T) {
		dies := origintest.New(t, origintest.Object{Size: mid}, origintest.NoValidator(), origintest.ShortBody(mid/2))
		r := newRig(t, toNodes(dies), nil)
		_, err := r.get(t.Context(), dies.URL(), Options{})
		r.fails(err, Network, "nothing was kept")
		r.holds()
	})
	t.Run("the object changes on the way", func(t *testing.T) {
		s := newDying(t, origintest.NewVersion(), origintest.NewVersion())
		r := newRig(t, toNodes(s.Server), nil)
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, Server, "changed on the server", "--resume")
		s.well.Store(true)
		if _, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil {
			t.Fatal(err)
		}
		now := &origintest.Exchange{Object: s.Object()}
		origintest.NewVersion()(now)
		r.isObject("object", now.Object)
	})
	t.Run("nothing to go on with", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		if res, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil || res.Resumed != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("not without being told", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		kept := r.cut(s, Options{})
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, File, "--resume", "--force")
		if st, err := os.Stat(r.path("object.part")); err != nil || st.Size() != kept {
			t.Errorf("%v, %v", st, err)
		}
		if res, err := r.get(t.Context(), s.URL(), Options{Force: true}); err != nil || res.Resumed != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("a server that cannot be reached costs nothing", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		kept := r.cut(s, Options{})
		s.Close()
		_, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		r.fails(err, Network, fmt.Sprint(kept), "--resume")
		r.holds("object.part")
	})
	t.Run("complete, but for its end", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		r.cut(s, Options{})
		r.own("object.part", s.Object().Bytes(0, mid), objectOf(s.Server))
		seen := len(s.Requests())
		sum := checksum(t, fmt.Sprintf("sha256:%x", s.Object().SHA256()))
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true, Checksum: sum})
		if err != nil || res.Size != mid || len(s.Requests()) != seen {
			t.Fatalf("%+v, %v, %d requests", res, err, len(s.Requests())-seen)
		}
		r.isObject("object", s.Object())
	})
}

func TestTrust(t *testing.T) {
	// edited cuts a download and changes its claim.
	edited := func(t *testing.T, edit func(map[string]any)) (*rig, *mortal) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		r.cut(s, Options{})
		r.edit(edit)
		return r, s
	}
	for _, tt := range []struct {
		name string
		edit func(map[string]any)
		want string // of the error
	}{
		{"another format", func(c map[string]any) { c["format"] = 99 }, "not known"},
		{"R91 another URL", func(c map[string]any) { c["url"] = "http://h/other" }, "another URL"},
		{"a field in the validator", func(c map[string]any) { c["validator"] = "\"v1\"\r\nX: y" }, "not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, s := edited(t, tt.edit)
			_, err := r.get(t.Context(), s.URL(), Options{Resume: true})
			r.fails(err, File, tt.want, "--force")
			r.holds("object.part")
		})
	}
	t.Run("another URL, with a checksum", func(t *testing.T) {
		r, s := edited(t, func(c map[string]any) { c["url"] = "http://h/other" })
		sum := checksum(t, fmt.Sprintf("sha256:%x", s.Object().SHA256()))
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true, Checksum: sum})
		if err != nil || res.Resumed == 0 || res.Checksum != fmt.Sprintf("sha256:%x", s.Object().SHA256()) {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("no claim", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		r.write("object.part", []byte("somebody's"))
		_, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		r.fails(err, File, "not known")
		if b, _ := os.ReadFile(r.path("object.part")); string(b) != "somebody's" {
			t.Errorf("%q", b)
		}
		if _, err := r.get(t.Context(), s.URL(), Options{Resume: true, Force: true}); err != nil || len(r.notes) != 1 {
			t.Fatalf("%v, %q", err, r.notes)
		}
		r.isObject("object", s.Object())
	})
	t.Run("written before the last boot", func(t *testing.T) {
		const synced = 1000
		r, s := edited(t, func(c map[string]any) { c["boot"], c["synced"], c["closed"] = "another", synced, false })
		// Turn the bytes that were not synced into zeros.
		part, err := os.ReadFile(r.path("object.part"))
		if err != nil {
			t.Fatal(err)
		}
		clear(part[synced:])
		r.write("object.part", part)
		s.well.Store(false)
		_, err = r.get(t.Context(), s.URL(), Options{Resume: true})
		r.fails(err, Server, "--resume")
		if _, c := r.claims(); c["boot"] == "another" || number(c["synced"]) < synced {
			t.Errorf("%v", c)
		}
		s.well.Store(true)
		if res, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil || res.Resumed < synced {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("no validator", func(t *testing.T) {
		r, s := edited(t, func(c map[string]any) { c["validator"] = "" })
		if res, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil || res.Resumed != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("the state folder cannot be used", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		if err := os.WriteFile(string(r.store()), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, Server, "nothing was kept", "state folder")
		r.holds()
		s.well.Store(true)
		if _, err := r.get(t.Context(), s.URL(), Options{}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
	})
}

// TestCheckpoint: the claim says how many bytes are on the disk, while more bytes arrive.
func TestCheckpoint(t *testing.T) {
	const checkpoint = 64 << 20
	r := newRig(t, straight, nil)
	d := newDownload(t.Context(), &Getter{Options: Options{Dir: r.dir, Partial: r.store()}}, NewMeter())
	out, err := d.open("object")
	if err != nil {
		t.Fatal(err)
	}
	if err := out.begin(version{validator: `"v1"`, size: 2 * checkpoint}); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for range checkpoint/len(block) + 1 {
		if _, err := out.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if prefix, c := r.claims(); number(c["synced"]) >= checkpoint && prefix >= checkpoint {
			break
		}
		<-tick.C
	}
	out.abandon()
	if prefix, c := r.claims(); number(c["synced"]) != checkpoint+1<<20 || prefix != checkpoint+1<<20 {
		t.Errorf("%d, %v", prefix, c)
	}
}

func TestStopped(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	s := origintest.New(t, origintest.Object{Size: mid}, origintest.StallAfter(threshold/2, gate))
	r := newRig(t, toNodes(s), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	m := NewMeter()
	go func() {
		g := &Getter{Transport: r.transport, Options: Options{Dir: r.dir, Partial: r.store()}}
		_, err := g.Get(ctx, s.URL(), m)
		done <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if file, have, size := m.Now(); have > 0 && size == mid && file == r.path("object") {
			break
		}
		<-tick.C
	}
	cancel()
	r.fails(<-done, Canceled, "stopped", "object.part", "--resume")
	r.holds("object.part")
	part, err := os.ReadFile(r.path("object.part"))
	if err != nil || len(part) == 0 || s.Object().Mismatch(part, 0) >= 0 {
		t.Errorf("%d bytes, %v", len(part), err)
	}
}

// arrivals counts the requests that arrive within a second of the first one.
type arrivals struct {
	mu    sync.Mutex
	began time.Time
	n     int
}

// early counts a request if it is one of them, and reports whether it is.
func (a *arrivals) early() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		a.began = time.Now()
	}
	if time.Since(a.began) > time.Second {
		return false
	}
	a.n++
	return true
}

// TestResumeAsksAhead: a resume from the place where the size of the object was found sends requests over all links before the
// first answer. A resume through a redirect does not, since the size does not belong to the first URL.
func TestResumeAsksAhead(t *testing.T) {
	t.Run("to the same place", func(t *testing.T) {
		t.Parallel()
		var came arrivals
		s := newMortal(t, origintest.If(func(*origintest.Request) bool { return came.early() }, origintest.SlowStart(time.Second)))
		first := newRig(t, toNodes(s.Server), nil)
		first.cut(s, Options{})
		r := newRig(t, toNodes(s.Server), nil) // as in another process
		r.dir = first.dir
		if _, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil {
			t.Fatal(err)
		}
		r.isObject("object", s.Object())
		if came.n < 2 {
			t.Errorf("%d requests before the first answer", came.n)
		}
	})
	t.Run("by a redirect", func(t *testing.T) {
		t.Parallel()
		var came arrivals
		s := newMortal(t)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if s.well.Load() && came.early() {
				time.Sleep(time.Second)
			}
			http.Redirect(w, q, s.URL(), http.StatusFound)
		}))
		t.Cleanup(front.Close)
		r := newRig(t, straight, nil)
		_, err := r.get(t.Context(), front.URL+"/object", Options{})
		r.fails(err, Server, "--resume")
		s.well.Store(true)
		res, err := r.get(t.Context(), front.URL+"/object", Options{Resume: true})
		if err != nil || res.Resumed == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
		if came.n != 1 {
			t.Errorf("%d requests for the redirect", came.n)
		}
	})
}
