package get

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/host/partial"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// hold opens a file for Fill.
func (r *rig) hold() *OpenFile {
	r.Helper()
	f, err := os.OpenFile(r.path("held"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { f.Close() })
	return &OpenFile{File: f, Version: Version{Size: -1}}
}

// fill fills a file and also returns the reported starts.
func (r *rig) fill(ctx context.Context, url string, h *OpenFile) (Result, []string, error) {
	r.Helper()
	var told []string
	g := &Getter{Transport: r.transport, Note: func(text string) { r.notes = append(r.notes, text) }}
	res, err := g.Fill(ctx, url, h, NewMeter(), func(name string, v Version) { told = append(told, name+" "+v.Validator) })
	return res, told, err
}

func (r *rig) isFilled(h *OpenFile, o origintest.Object) {
	r.Helper()
	b, err := os.ReadFile(h.File.Name())
	if err != nil || int64(len(b)) != o.Size || o.Mismatch(b, 0) >= 0 || h.Have != o.Size {
		r.Errorf("%d bytes, %d of them known, the first wrong one is %d; want %d (%v)", len(b), h.Have, o.Mismatch(b, 0), o.Size, err)
	}
}

func TestFill(t *testing.T) {
	ctx := t.Context()
	t.Run("a file from its beginning", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		h := r.hold()
		if _, err := h.File.WriteString("what was there before"); err != nil {
			t.Fatal(err)
		}
		res, told, err := r.fill(ctx, s.URL(), h)
		if err != nil || res.File != "object" || len(told) != 1 || told[0] != `object "v1"` {
			t.Errorf("%+v, told %q, %v", res, told, err)
		}
		r.isFilled(h, s.Object())
	})
	t.Run("goes on after a cut", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		h := r.hold()
		if _, _, err := r.fill(ctx, s.URL(), h); err == nil || h.Have == 0 || h.Have == mid {
			t.Fatalf("%d bytes, %v", h.Have, err)
		}
		s.well.Store(true)
		seen, kept := len(s.Requests()), h.Have
		again := &OpenFile{File: h.File, Version: h.Version, Have: h.Have} // as in another process
		res, told, err := r.fill(ctx, s.URL(), again)
		if err != nil || res.Resumed != kept || len(told) != 0 {
			t.Errorf("%+v after %d bytes, told %q, %v", res, kept, told, err)
		}
		r.isFilled(again, s.Object())
		for _, q := range s.Requests()[seen:] {
			if q.Header.Get("If-Range") != `"v1"` {
				t.Errorf("R94: %s", q.Raw)
			}
		}
		seen = len(s.Requests())
		if _, _, err := r.fill(ctx, s.URL(), again); err != nil || len(s.Requests()) != seen {
			t.Errorf("all is there, and is asked for again: %v", err)
		}
	})
	t.Run("begins anew", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		for name, spoil := range map[string]func(*OpenFile){
			"another version":            func(h *OpenFile) { h.Validator = `"v0"` },
			"another place":              func(h *OpenFile) { h.Place = "http://elsewhere.example/object" },
			"more than the file has":     func(h *OpenFile) { h.Have = 1 << 40 },
			"more than the object has":   func(h *OpenFile) { h.Size = 3 },
			"negative":                   func(h *OpenFile) { h.Have = -1 },
			"nothing to go on with":      func(h *OpenFile) { h.Validator = "" },
			"a part without its version": func(h *OpenFile) { h.Version = Version{} },
			"R218 told without a file":   func(h *OpenFile) { h.Mark = markOfObject(s.Object()) },
			"R218 told about another":    func(h *OpenFile) { h.Mark = markOfObject(s.Object()) + ".1.0" },
			"R218 born at another time":  func(h *OpenFile) { h.Mark += "1" },
		} {
			r := newRig(t, toNodes(s), nil)
			h := r.hold()
			if _, err := h.File.WriteString("XXXXXX"); err != nil {
				t.Fatal(err)
			}
			h.Have, h.Version = 6, Version{`"v1"`, mid, s.URL(), partial.Seal(h.File, markOfObject(s.Object()))}
			spoil(h)
			if _, told, err := r.fill(ctx, s.URL(), h); err != nil || len(told) == 0 {
				t.Errorf("%s: told %q, %v", name, told, err)
			}
			r.isFilled(h, s.Object())
		}
	})
	t.Run("a checksum", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		h := r.hold()
		digest := sha256.New()
		if _, _, err := r.fill(ctx, s.URL(), h); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(h.File.Name()); err != nil || len(b) != mid {
			t.Fatal(len(b), err)
		} else {
			digest.Write(b)
		}
		right := "sha256:" + hex.EncodeToString(digest.Sum(nil))
		verify := func(ctx context.Context, sum string, h *OpenFile) (Result, error) {
			c, err := ParseChecksum(sum)
			if err != nil {
				t.Fatal(err)
			}
			g := &Getter{Transport: r.transport, Options: Options{Checksum: c}}
			return g.Fill(ctx, s.URL(), h, NewMeter(), nil)
		}
		if res, err := verify(ctx, right, h); err != nil || res.Checksum != right {
			t.Errorf("%+v, %v", res, err)
		}
		r.isFilled(h, s.Object())
		gone, stop := context.WithCancel(ctx)
		stop()
		var e *Error
		if _, err := verify(gone, right, h); !errors.As(err, &e) || e.Kind != Canceled || h.Have != mid {
			t.Errorf("stopped while it is verified: %v, %d bytes", err, h.Have)
		}
		_, err := verify(ctx, "sha256:"+strings.Repeat("0", 64), h)
		if !errors.As(err, &e) || e.Kind != Mismatch || e.Code() != CodeChecksum || e.Temporary || !strings.HasPrefix(e.Host, "127.0.0.1:") {
			t.Errorf("%+v", err)
		}
		if info, err := h.File.Stat(); err != nil || info.Size() != 0 || h.Have != 0 || h.Validator != "" {
			t.Errorf("the wrong file is kept: %d bytes, %+v, %v", info.Size(), h, err)
		}
		if res, err := verify(ctx, right, h); err != nil || res.Checksum != right || res.Resumed != 0 {
			t.Errorf("again: %+v, %v", res, err)
		}
		r.isFilled(h, s.Object())
	})
	t.Run("stopped", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: 16 << 20}, origintest.RateLimit(paced))
		r := newRig(t, toNodes(s), nil)
		h := r.hold()
		stopping, stop := context.WithCancel(ctx)
		defer stop()
		g := &Getter{Transport: r.transport}
		m := NewMeter()
		go func() {
			for m.Prefix() < mid && stopping.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			stop()
		}()
		_, err := g.Fill(stopping, s.URL(), h, m, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Canceled {
			t.Errorf("%v", err)
		}
		b, _ := os.ReadFile(h.File.Name())
		if int64(len(b)) != h.Have || h.Have < mid || s.Object().Mismatch(b, 0) >= 0 || h.Validator != `"v1"` {
			t.Errorf("%d bytes, %d known, version %+v", len(b), h.Have, h.Version)
		}
	})
	t.Run("errors", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		gone := origintest.New(t, origintest.Object{Size: mid}, origintest.Status(404))
		r := newRig(t, straight, nil)
		h := r.hold()
		unwritable, err := os.Open(h.File.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer unwritable.Close()
		for _, tt := range []struct {
			url  string
			file *os.File
			kind Kind
		}{{s.URL(), unwritable, File}, {"ftp://example.com/", h.File, Usage}, {gone.URL(), h.File, Server}} {
			_, _, err := r.fill(ctx, tt.url, &OpenFile{File: tt.file, Version: Version{Size: -1}})
			var e *Error
			if !errors.As(err, &e) || e.Kind != tt.kind {
				t.Errorf("%s: %v", tt.url, err)
			}
		}
	})
}
