package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tributary-http/tributary/internal/host/partial"
)

// size is the size of the objects in these tests, in bytes.
const size = 100_000

// origin is a Transport that generates answers, depending on the path: /N is an object, /gate/N one whose second half waits until
// open is closed, /late/N one that is not there before, /weak/N one that cannot be resumed, and /broken/N one that breaks off in the middle of the first answers.
type origin struct {
	open   chan struct{}
	breaks atomic.Int64 // number of answers that still break off; negative = none
	sent   atomic.Int64 // bytes

	mu      sync.Mutex
	running map[string]bool // paths
	most    int             // maximum that ran concurrently
}

func newOrigin() *origin { return &origin{open: make(chan struct{}), running: map[string]bool{}} }

func (o *origin) isOpen() bool {
	select {
	case <-o.open:
		return true
	default:
		return false
	}
}

// RoundTrip implements http.RoundTripper.
func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	resp := &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Accept-Ranges": {"bytes"}}, Request: r}
	from := int64(0)
	switch {
	case strings.HasPrefix(path, "/none"), strings.HasPrefix(path, "/late") && !o.isOpen():
		resp.StatusCode, resp.Body = 404, http.NoBody
		return resp, nil
	case !strings.HasPrefix(path, "/weak"):
		resp.Header.Set("ETag", `"v1"`)
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			resp.StatusCode = 206
			resp.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, size-1, size))
		}
	}
	resp.ContentLength = size - from
	o.mu.Lock()
	o.running[path] = true
	o.most = max(o.most, len(o.running))
	o.mu.Unlock()
	resp.Body = &content{o: o, ctx: r.Context(), path: path, at: from, breaks: strings.HasPrefix(path, "/broken") && o.breaks.Add(-1) >= 0}
	return resp, nil
}

// content is the body of an answer: the rest of an object.
type content struct {
	o      *origin
	ctx    context.Context
	path   string
	at     int64
	breaks bool
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if c.at >= size/2 && strings.HasPrefix(c.path, "/gate") {
		select {
		case <-c.o.open:
		case <-c.ctx.Done():
			return 0, c.ctx.Err()
		}
	}
	switch {
	case c.at == size:
		return 0, io.EOF
	case c.at >= size/2 && c.breaks:
		return 0, io.ErrUnexpectedEOF
	}
	end := int64(size)
	if c.at < size/2 {
		end = size / 2
	}
	n := min(int64(len(p)), end-c.at)
	for i := range n {
		p[i] = byteAt(c.path, c.at+i)
	}
	c.at += n
	c.o.sent.Add(n)
	return int(n), nil
}

// Close implements io.Closer.
func (c *content) Close() error {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	delete(c.o.running, c.path)
	return nil
}

// byteAt returns the byte of an object at an offset.
func byteAt(path string, at int64) byte { return byte(at*7) + path[len(path)-1] }

// rig is a folder, a list, and an origin.
type rig struct {
	*testing.T
	origin *origin
	Config
}

func newRig(t *testing.T) *rig {
	dir := t.TempDir()
	o := newOrigin()
	return &rig{t, o, Config{
		Transport: o, Dir: filepath.Join(dir, "files"), State: filepath.Join(dir, "state", "downloads.json"),
		Partial: partial.Store(filepath.Join(dir, "state", "partial")), MaxConcurrent: 2,
		Agent: "test", Log: slog.New(slog.DiscardHandler),
	}}
}

// run runs a queue until stop.
func (r *rig) run() (q *Queue, stop func()) {
	q = New(r.Config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Error(err)
		}
	})
	r.Cleanup(stop)
	return q, stop
}

// add orders a download of /path.
func (r *rig) add(q *Queue, path string) string {
	r.Helper()
	gid, err := q.Add(Order{URLs: []string{"http://origin.example/" + path}}, false, -1)
	if err != nil {
		r.Fatal(err)
	}
	return gid
}

// is fails the test unless a download has a status.
func (r *rig) is(q *Queue, gid string, want Status) Download {
	r.Helper()
	d, err := q.Get(gid)
	if err != nil || d.Status != want {
		r.Fatalf("%s is %q (%s), want %q; %v", gid, d.Status, d.Message, want, err)
	}
	return d
}

// holds fails the test unless the folder contains exactly these files, all complete.
func (r *rig) holds(names ...string) {
	r.Helper()
	entries, _ := os.ReadDir(r.Dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
		b, err := os.ReadFile(filepath.Join(r.Dir, e.Name()))
		if err != nil || len(b) != size {
			r.Errorf("%s has %d bytes, %v", e.Name(), len(b), err)
			continue
		}
		for i := range b {
			if b[i]-b[0] != byte(i*7) {
				r.Errorf("%s: byte %d is not the object's", e.Name(), i)
				break
			}
		}
	}
	if !slices.Equal(got, names) {
		r.Errorf("the folder holds %q, want %q", got, names)
	}
}

// TestOrder: a limited number of downloads run concurrently, in order, and the order can be changed.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		var all []string
		for i := range 6 {
			all = append(all, r.add(q, fmt.Sprintf("gate/%d", i)))
		}
		synctest.Wait()
		to, err := q.Move(all[5], func(int, int) int { return 0 })
		if err != nil || to != 0 {
			t.Error(to, err)
		}
		active, waiting, _, _, err := q.Lists()
		var got []string
		for _, d := range slices.Concat(active, waiting) {
			got = append(got, d.GID)
		}
		if want := []string{all[0], all[1], all[5], all[2], all[3], all[4]}; !slices.Equal(got, want) || err != nil || len(active) != 2 {
			t.Errorf("%v, want %v", got, want)
		}
		if _, err := q.Pause(all[2]); err != nil {
			t.Error(err)
		}
		close(r.origin.open)
		synctest.Wait()
		for _, gid := range all {
			if gid != all[2] {
				r.is(q, gid, Complete)
			}
		}
		r.is(q, all[2], Paused)
		if _, err := q.Unpause(all[2]); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		r.holds("0", "1", "2", "3", "4", "5")
		if r.origin.most != 2 {
			t.Errorf("%d ran at a time", r.origin.most)
		}
		stop()
	})
}

// TestSameName: downloads with the same name get different ones, whether they run concurrently or a file already exists.
func TestSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		a, b := r.add(q, "gate/x.bin"), r.add(q, "gate/a/x.bin")
		synctest.Wait()
		close(r.origin.open)
		synctest.Wait()
		r.is(q, a, Complete)
		r.is(q, b, Complete)
		r.add(q, "b/x.bin")
		synctest.Wait()
		r.holds("x.1.bin", "x.2.bin", "x.bin")
		stop()
	})
}

// TestFileAppears: a file that another program creates meanwhile stays, and the download gets another name.
func TestFileAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		gid := r.add(q, "gate/x.bin")
		synctest.Wait()
		theirs := filepath.Join(r.Dir, "x.bin")
		if err := os.WriteFile(theirs, []byte("theirs"), 0o644); err != nil {
			t.Fatal(err)
		}
		close(r.origin.open)
		synctest.Wait()
		if d := r.is(q, gid, Complete); d.File != filepath.Join(r.Dir, "x.1.bin") {
			t.Error(d.File)
		}
		if b, err := os.ReadFile(theirs); string(b) != "theirs" {
			t.Errorf("%q %v", b, err)
		}
		if err := os.Remove(theirs); err != nil {
			t.Fatal(err)
		}
		r.holds("x.1.bin")
		stop()
	})
}

// TestPause: a download that was paused, or whose program ended, continues where it stopped; a removed one leaves nothing.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		events, deaf := q.Listen()
		paused, removed := r.add(q, "gate/1"), r.add(q, "gate/2")
		waiting := r.add(q, "gate/3")
		synctest.Wait()
		if _, err := q.Pause(paused); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if d := r.is(q, paused, Paused); d.Have != size/2 || d.Size != size {
			t.Errorf("%+v", d)
		}
		if _, err := q.Remove(removed); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		r.is(q, removed, Removed)
		deaf()
		want := []Event{{paused, Active}, {removed, Active}, {paused, Paused}, {waiting, Active}, {removed, Removed}}
		for _, w := range want {
			if e := <-events; e != w {
				t.Errorf("%v, want %v", e, w)
			}
		}
		for _, wrong := range []func() (string, error){
			func() (string, error) { return q.Pause(paused) }, func() (string, error) { return q.Pause(removed) },
			func() (string, error) { return q.Unpause(removed) }, func() (string, error) { return q.Remove(removed) },
			func() (string, error) { return q.Forget(waiting) },
		} {
			if _, err := wrong(); !errors.As(err, new(StateError)) {
				t.Error(err)
			}
		}
		stop()
		if _, err := q.Get(paused); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		q, stop = r.run()
		r.is(q, paused, Paused)
		r.is(q, removed, Removed)
		r.is(q, waiting, Active)
		if err := q.UnpauseAll(); err != nil {
			t.Error(err)
		}
		close(r.origin.open)
		synctest.Wait()
		r.is(q, paused, Complete)
		r.is(q, waiting, Complete)
		r.holds("1", "3")
		if sent := r.origin.sent.Load(); sent != 2*size+size/2 { // including half of the removed one
			t.Errorf("%d bytes were fetched", sent)
		}
		stop()
	})
}

// TestRetry: temporary errors are retried, and progress resets the number of tries; other errors fail immediately.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name, path string
		breaks     int64
		want       Status
		holds      []string
	}{
		{"it breaks off once", "broken/1", 1, Complete, []string{"1"}},
		{"the last try succeeds", "broken/1", maxTries - 1, Complete, []string{"1"}},
		{"it never gets on", "broken/1", 100, Failed, nil},
		{"it is not there", "none/1", 0, Failed, nil},
		{"it cannot be resumed", "weak/1", 0, Complete, []string{"1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.origin.breaks.Store(c.breaks)
				q, stop := r.run()
				events, deaf := q.Listen()
				gid := r.add(q, c.path)
				for e := range events {
					if e.Status != Active {
						break
					}
				}
				deaf()
				if d := r.is(q, gid, c.want); c.want == Failed && d.Message == "" {
					t.Error("no message")
				}
				if c.holds != nil {
					r.holds(c.holds...)
				}
				stop()
			})
		})
	}
}

// TestSecondURL: if a URL delivers nothing, the next one is tried.
func TestSecondURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		gid, err := q.Add(Order{URLs: []string{"ftp://origin.example/a", "http://origin.example/none/a", "http://origin.example/b"}}, false, -1)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.is(q, gid, Complete)
		r.holds("b")
		stop()
	})
}

// TestKilled: whenever the program is killed, nothing is lost and nothing complete is fetched again.
func TestKilled(t *testing.T) {
	t.Run("after the rename, before that was taken down", func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		gid := r.add(q, "gate/1")
		for name := ""; name == ""; {
			d, err := q.Get(gid)
			if err != nil {
				t.Fatal(err)
			}
			name = d.File
		}
		entered, busy := make(chan struct{}), make(chan struct{})
		go func() { _ = q.do(func() error { close(entered); <-busy; return nil }) }()
		<-entered // Run learns nothing for now
		close(r.origin.open)
		for {
			if _, err := os.Stat(filepath.Join(r.Dir, "1")); err == nil {
				break
			}
		}
		state, before := filepath.Dir(r.State), t.TempDir()
		if err := os.CopyFS(before, os.DirFS(state)); err != nil {
			t.Fatal(err)
		}
		close(busy)
		for d, _ := q.Get(gid); d.Status != Complete; d, _ = q.Get(gid) {
		}
		stop()
		if left, err := os.ReadDir(string(r.Partial)); err != nil || len(left) > 0 {
			t.Errorf("it keeps %v, %v", left, err)
		}
		if err := errors.Join(os.RemoveAll(state), os.Rename(before, state), os.Chmod(state, 0o700)); err != nil {
			t.Fatal(err)
		}
		q, _ = r.run()
		r.is(q, gid, Complete)
		r.holds("1")
		if sent := r.origin.sent.Load(); sent != size {
			t.Errorf("%d bytes were fetched", sent)
		}
	})
	t.Run("the list is damaged", func(t *testing.T) {
		r := newRig(t)
		if err := os.MkdirAll(filepath.Dir(r.State), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.State, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		q, _ := r.run()
		r.add(q, "1")
		if _, err := os.Stat(r.State + ".unreadable"); err != nil {
			t.Error(err)
		}
	})
	t.Run("another process has the list", func(t *testing.T) {
		r := newRig(t)
		q, _ := r.run()
		r.add(q, "1") // it has started
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("enough"))
		if err := New(r.Config).Run(ctx); err == nil {
			t.Error("two processes make the same downloads")
		}
	})
	t.Run("the list cannot be saved", func(t *testing.T) {
		r := newRig(t)
		q, stop := r.run()
		defer stop()
		events, deaf := q.Listen()
		defer deaf()
		first := r.add(q, "1")
		for e := range events {
			if e.Status == Complete {
				break
			}
		}
		r.is(q, first, Complete) // and the list is saved
		if err := os.RemoveAll(filepath.Dir(r.State)); err != nil {
			t.Fatal(err)
		}
		gid := newID()
		if _, err := q.Add(Order{GID: gid, URLs: []string{"http://origin.example/2"}}, false, -1); err == nil {
			t.Error("it was confirmed")
		}
		if _, err := q.Get(gid); !errors.As(err, new(NotFoundError)) {
			t.Errorf("it is in the list: %v", err)
		}
		if err := os.Mkdir(filepath.Dir(r.State), 0o700); err != nil { // for the cleanup
			t.Fatal(err)
		}
	})
}
