package discover

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"github.com/tributary-http/tributary/internal/net/link"
)

// broken is a Source that cannot be observed.
type broken struct{}

func (broken) Watch(context.Context) (<-chan []link.Link, error) { return nil, errBroken }

var errBroken = errors.New("broken")

func TestMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewStatic(lnk("a0", 1, "10.0.0.1")), NewStatic()
		ctx, cancel := context.WithCancel(t.Context())
		ch, err := Merge(a, b).Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := func(names ...string) {
			t.Helper()
			var got []string
			for _, l := range <-ch {
				got = append(got, l.Name)
			}
			if !slices.Equal(got, names) {
				t.Errorf("%v, want %v", got, names)
			}
		}
		quiet := func() {
			t.Helper()
			synctest.Wait()
			select {
			case links, ok := <-ch:
				t.Errorf("sent %v, %v", links, ok)
			default:
			}
		}
		want("a0")
		quiet()
		b.Set(lnk("b0", 0), lnk("a0", 0))
		want("a0", "b0")
		b.Set(lnk("b0", 0)) // the other a0 was ignored
		quiet()
		b.Set()
		synctest.Wait() // nobody reads
		b.Set(lnk("c0", 0))
		synctest.Wait()
		want("a0", "c0")
		a.Set()
		want("c0")
		b.Set()
		want()
		quiet()
		cancel()
		for range ch {
		}
	})
}

// TestMergeFails: the sources that could be observed leave nothing running.
func TestMergeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if ch, err := Merge(NewStatic(), broken{}).Watch(t.Context()); ch != nil || !errors.Is(err, errBroken) {
			t.Errorf("%v, %v", ch, err)
		}
	})
}

// over is a Path that is only compared.
type over struct{ link.Path }

func TestWithPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, other := &over{}, &over{}
		has := lnk("b0", 0)
		has.Path = own
		s := NewStatic(lnk("a0", 1), has)
		ctx, cancel := context.WithCancel(t.Context())
		ch, err := WithPaths(s, func(link.Link) link.Path { return other }).Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if links := <-ch; len(links) != 2 || links[0].Path != other || links[1].Path != own {
			t.Errorf("%+v", links)
		}
		// A link that gets another Path is a change.
		has.Path = &over{}
		s.Set(lnk("a0", 1), has)
		if links := <-ch; len(links) != 2 || links[1].Path != has.Path {
			t.Errorf("%+v", links)
		}
		cancel()
		for range ch {
		}
	})
}

func TestEmulatedPath(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var of string
	links := link.DialFunc(func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		if of = l.Name; addr == "nowhere:1" {
			return nil, errBroken
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}).Over(lnk("a0", 1), lnk("b0", 2))
	c, info, err := links[1].Dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil || of != "b0" || info.RTT <= 0 && !UnderQEMU || info.Origin.String() != ln.Addr().String() || info.Local {
		t.Fatalf("over %s: %+v, %v", of, info, err)
	}
	c.Close()
	if _, _, err := links[0].Dial(t.Context(), "tcp", "nowhere:1"); !errors.Is(err, errBroken) || of != "a0" {
		t.Errorf("over %s: %v", of, err)
	}
	var none *link.DialError
	if _, _, err := lnk("c0", 3).Dial(t.Context(), "tcp", "o.test:80"); !errors.As(err, &none) || none.Link != "c0" {
		t.Errorf("a link without a path: %v", err)
	}
	for _, l := range []link.Link{links[0], lnk("c0", 3)} {
		if err := l.Probe(t.Context()); !errors.Is(err, link.ErrNothingToProbe) {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
}
