package opening

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
)

func TestAhead(t *testing.T) {
	const kB = 1 << 10
	for _, c := range []struct {
		name, path string
		fields     map[string][]string
		memory     Memory
		want       segment.Range
	}{
		{name: "nothing suggests a large object", path: "/page"},
		{name: "a page", path: "/index.html"},
		{name: "an image of a disk", path: "/debian.iso", want: segment.Range{Start: small, End: small + 64*kB}},
		{name: "its name in capitals", path: "/debian.ISO", want: segment.Range{Start: small, End: small + 64*kB}},
		{name: "a query may be valid once only", path: "/debian.iso?token=1"},
		{name: "a query, and the size that an earlier GET found", path: "/debian.iso?token=1", memory: Memory{Size: 1 << 30}},
		{name: "a query, and the client knows the size", path: "/get?id=1", memory: Memory{Size: 1 << 30, Sure: true}, want: segment.Range{Start: small, End: small + 8*128*kB}},
		{name: "an extension in the query only", path: "/get?file=debian.iso"},
		{name: "a known size", path: "/page", memory: Memory{Size: 1 << 30}, want: segment.Range{Start: small, End: small + 8*128*kB}},
		{name: "a known size, hardly worth it", path: "/page", memory: Memory{Size: small + 40*kB}, want: segment.Range{Start: small, End: small + 40*kB}},
		{name: "a known size, not worth it", path: "/a.iso", memory: Memory{Size: small + 4*kB}},
		{name: "no more than the first range", path: "/a.iso", memory: Memory{Size: small}},
		{name: "a part", path: "/a.iso", fields: header("Range", "bytes=1000000-"), want: segment.Range{Start: 1e6 + small, End: 1e6 + small + 64*kB}},
		{name: "a small part", path: "/a.iso", fields: header("Range", "bytes=1000000-1070000")},
		{name: "a part of its own kind", path: "/a.iso", fields: header("Range", "bytes=-500000")},
		{name: "a condition", path: "/a.iso", fields: header("If-None-Match", `"v"`)},
		{name: "If-Range", path: "/a.iso", fields: header("Range", "bytes=1000000-", "If-Range", `"v"`)},
		{name: "the origin serves it whole", path: "/a.iso", memory: Memory{Whole: true}},
		{name: "the origin refused later requests", path: "/a.iso", memory: Memory{Refuses: true}},
		{name: "the origin serves small objects", path: "/a.iso", memory: Memory{Small: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New("http", c.path, c.fields, small).Begin(c.memory)
			if p.Ahead != c.want {
				t.Errorf("%v, want %v", p.Ahead, c.want)
			}
		})
	}
}

// TestAheadOnce checks that a GET whose range the origin rejected is made again as the client made it, with no requests ahead of
// it.
func TestAheadOnce(t *testing.T) {
	o := New("http", "/a.iso", nil, small)
	if p := o.Begin(Memory{Size: 1 << 30}); p.Ahead.Empty() {
		t.Fatal("nothing is asked ahead at first")
	}
	if v := o.Answer(Head{Status: 416}, "a", false); v.Do != Repeat || !o.Again() {
		t.Fatalf("%+v", v)
	}
	if p := o.Begin(Memory{Size: 1 << 30}); !p.Ahead.Empty() || p.Initial > 0 {
		t.Errorf("%+v", p)
	}
}
