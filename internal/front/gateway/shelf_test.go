package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// slowly is a Transport that sends the beginning of a page for the paths /slow of its world, and the rest never.
type slowly struct{ *world }

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.RequestURI() != "/slow" {
		return s.world.RoundTrip(r)
	}
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
	go func() { _, _ = io.WriteString(w, "<a href=x>") }()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: body, ContentLength: -1}, nil
}

func TestSlowIndexPages(t *testing.T) {
	index := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<a href=x>x</a>")
	}
	addr := serve(t, slowly{&world{servers: map[string]http.HandlerFunc{"a.example:443": index, "b.example:443": index}}}, "a.example", "b.example")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 4 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/simple/a.example/slow", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
	}
	for _, host := range []string{"a.example", "b.example"} {
		t.Run("R242 of "+host, func(t *testing.T) {
			for range 10 { // the slow pages arrive meanwhile
				if resp, body := ask(t, addr, http.MethodGet, "/simple/"+host+"/p/"); resp.StatusCode != http.StatusOK || !strings.Contains(body, "href") {
					t.Errorf("%s: %q", resp.Status, body)
				}
			}
		})
	}
}

func TestShelf(t *testing.T) {
	page := bytes.Repeat([]byte("x"), maxIndex)
	t.Run("R242 a page keeps its bytes", func(t *testing.T) {
		for _, size := range []int{0, 1, pieceSize - 1, pieceSize, pieceSize + 1, maxIndex} {
			var s shelf
			p, err := s.read(t.Context(), "a", bytes.NewReader(page[:size]))
			if err != nil || !bytes.Equal(bytes.Join(p.pieces, nil), page[:size]) {
				t.Fatalf("%d: %v", size, err)
			}
			if s.leave(p); len(s.pages) > 0 {
				t.Error("it stays")
			}
		}
	})
	t.Run("R242 a page that is too large, or breaks off, leaves", func(t *testing.T) {
		var s shelf
		if _, err := s.read(t.Context(), "a", io.MultiReader(bytes.NewReader(page), strings.NewReader("x"))); !errors.Is(err, errLarge) {
			t.Error(err)
		}
		broken := io.MultiReader(strings.NewReader("x"), errorReader{io.ErrUnexpectedEOF})
		if _, err := s.read(t.Context(), "a", broken); err != io.ErrUnexpectedEOF || len(s.pages) > 0 {
			t.Error(err)
		}
	})
	t.Run("R242 bytes of a host are bounded, and its first page arrives", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var s shelf
			ctx, cancel := context.WithTimeoutCause(t.Context(), pageTime, errLate)
			defer cancel()
			const half = maxIndex/2 + pieceSize
			results := make(chan error)
			var writers []*io.PipeWriter
			for range 3 {
				r, w := io.Pipe()
				context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
				go func() {
					_, err := s.read(ctx, "a", r)
					results <- err
				}()
				go func() { _, _ = w.Write(page[:half]) }()
				synctest.Wait()
				writers = append(writers, w)
			}
			if held := s.held(); held > maxIndex+pieceSize {
				t.Errorf("%d bytes", held)
			}
			other, err := s.read(ctx, "b", bytes.NewReader(page))
			if err != nil {
				t.Fatal(err)
			}
			s.leave(other)
			go func() {
				_, _ = writers[0].Write(page[half:])
				writers[0].Close()
			}()
			if err := <-results; err != nil {
				t.Errorf("the first page: %v", err)
			}
			if held := s.held(); held > 2*maxIndex {
				t.Errorf("%d bytes", held)
			}
			for range 2 { // nobody sends the rest
				if err := <-results; !errors.Is(err, errLate) {
					t.Errorf("a late page: %v", err)
				}
			}
		})
	})
}

// TestShelfOfManyHosts: however many hosts there are, pages that nobody completes hold no more than two of the largest.
func TestShelfOfManyHosts(t *testing.T) {
	t.Run("R242 bytes of all hosts are bounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var s shelf
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, host := range []string{"a", "b", "c", "d"} {
				r, w := io.Pipe()
				context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
				go func() { _, _ = s.read(ctx, host, r) }()
				go func() { _, _ = w.Write(bytes.Repeat([]byte("x"), maxIndex)) }()
				synctest.Wait()
			}
			if held := s.held(); held > 2*maxShelf {
				t.Errorf("%d bytes", held)
			}
		})
	})
}

// held returns how many bytes the pages of a shelf have.
func (s *shelf) held() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		n += p.size
	}
	return n
}

type errorReader struct{ err error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.err }
