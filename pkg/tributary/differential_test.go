package tributary

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// environment reads a number.
func environment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// odd is a random origin, and a request to it.
type odd struct {
	name   string
	object ot.Object
	faults []ot.Fault
	breaks []ot.Fault // not of the direct fetch
	h2     bool
	asked  string // Range
	way    string
}

// drawOdd draws a case.
func drawOdd(rng *rand.Rand) *odd {
	c := &odd{h2: rng.IntN(2) == 0, way: []string{"RoundTrip", "Download", "Download"}[rng.IntN(3)]}
	size := rng.Int64N(600_000) + 1
	c.object = ot.Object{Size: size, Seed: rng.Uint64()}.Defaults()
	ranged := func(r *ot.Request) bool { return r.Range != "" }
	type named struct {
		name   string
		faults []ot.Fault
	}
	of := func(name string, f ...ot.Fault) named { return named{name, f} }
	one := func(all []named, to *[]ot.Fault) {
		f := all[rng.IntN(len(all))]
		c.name += " " + f.name
		*to = append(*to, f.faults...)
	}
	from := rng.Int64N(size)
	one([]named{
		of(""), of(""), of(""), of("weak", ot.WeakETag()), of("no validator", ot.NoValidator()), of("no ranges", ot.NoRanges()),
		of("ignores ranges", ot.IgnoresRange()), of("206 of a middle", ot.Always206(from/2, from+1)), of("206 of everything", ot.Always206(0, size)),
		of("206 of the beginning", ot.Always206(0, from+1)), of("wrong start", ot.If(ranged, ot.WrongStart(3))), of("ends beyond", ot.If(ranged, ot.EndsBeyond(1))),
		of("caps ranges", ot.CapsRanges(1+from)), of("multipart", ot.If(ranged, ot.Multipart())), of("no Content-Range", ot.If(ranged, ot.NoContentRange())),
		of("unknown total", ot.If(ranged, ot.WrongTotal(-1))), of("403 for ranges", ot.If(ranged, ot.Status(403))), of("404", ot.Status(404)), of("416 for ranges", ot.If(ranged, ot.Status(416))),
	}, &c.faults)
	if !c.h2 {
		one([]named{of(""), of(""), of("chunked", ot.InChunks()), of("until close", ot.CloseDelimited()), of("HTTP/1.0", ot.HTTP10())}, &c.faults)
	}
	later := func(r *ot.Request) bool { return r.Header.Get("If-Range") != "" }
	one([]named{
		of(""), of(""), of(""), of("other version on a node", ot.OnNode(1, ot.NewVersion())), of("short on a node", ot.OnNode(1, ot.ShortBody(1+from/2))),
		of("resets", ot.OnNode(0, ot.ResetAfter(from))), of("surplus in parts", ot.If(later, ot.Del("Content-Length"), ot.SurplusBody(2))),
		of("HTTP/1.0 with chunks", ot.HTTP10(), ot.InChunks()), of("an odd name", ot.Set("X Y", "z")), of("no ranges on a node", ot.OnNode(1, ot.NoRanges())),
	}, &c.breaks)
	if strings.Contains(c.name, "until close") {
		c.breaks = nil // no visible end
	}
	if c.h2 && strings.Contains(c.name, "odd name") {
		c.breaks = nil // net/http would not send it
	}
	to := from + rng.Int64N(size-from)
	c.asked = []string{"", "", "", fmt.Sprintf("bytes=%d-%d", from, to), fmt.Sprintf("bytes=%d-", from), fmt.Sprintf("bytes=-%d", 1+from), "bytes=0-0,2-3"}[rng.IntN(7)]
	return c
}

// TestDifferential sends random requests to random origins, directly and through a Transport over two links. A success must have
// exactly the bytes of a direct fetch, or of the requested range of the object. It runs 500 cases, or TRIBUTARY_CASES, from
// TRIBUTARY_SEED or a seed from the clock; TRIBUTARY_CASE runs only that case.
func TestDifferential(t *testing.T) {
	n, first := environment(t, "TRIBUTARY_CASES", 500), uint64(0)
	seed := environment(t, "TRIBUTARY_SEED", uint64(time.Now().UnixNano()))
	if only := environment(t, "TRIBUTARY_CASE", n); only < n {
		first, n = only, only+1
	}
	t.Logf("TRIBUTARY_SEED=%d", seed)
	var faults sync.Map
	s := ot.New(t, ot.Object{Size: 1}, func(x *ot.Exchange) {
		if all, ok := faults.Load(strings.TrimPrefix(x.Target, "/")); ok {
			for _, f := range all.([]ot.Fault) {
				f(x)
			}
		}
	})
	secure := s.Secure()
	lead := func(node int, addr string) string {
		if strings.HasSuffix(addr, ":443") {
			return secure.Addr(node)
		}
		return s.Addr(node)
	}
	tr := newTransport(t, secure.Roots, func(name, addr string) string { return lead(map[string]int{"wifi": 0, "lte": 1}[name], addr) })
	plain := &http.Transport{
		DisableCompression: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: secure.Roots}, IdleConnTimeout: time.Second,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, lead(0, addr))
		},
	}
	t.Cleanup(plain.CloseIdleConnections)
	var next, equal, visible atomic.Uint64
	next.Store(first)
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= n || t.Failed() {
					return
				}
				c := drawOdd(rand.New(rand.NewPCG(seed, i)))
				url := func(kind string) string {
					id, scheme := fmt.Sprintf("l%d%s", i, kind), "http"
					if c.h2 {
						scheme = "https"
					}
					all := []ot.Fault{func(x *ot.Exchange) { x.Object = c.object }}
					all = append(all, c.faults...)
					if kind == "" {
						all = append(all, c.breaks...)
					}
					faults.Store(id, all)
					return scheme + "://" + id + ".secure.test/" + id
				}
				wrong, err := c.try(t, tr, plain, url("d"), url(""))
				switch {
				case wrong != "":
					t.Errorf("TRIBUTARY_SEED=%d TRIBUTARY_CASE=%d:%s, %d bytes, h2 %v, %s of %q: %s", seed, i, c.name, c.object.Size, c.h2, c.way, c.asked, wrong)
				case err != nil:
					visible.Add(1)
				default:
					equal.Add(1)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d cases: %d answers equal to a direct fetch, %d visible errors", n-first, equal.Load(), visible.Load())
	if e, v := equal.Load(), visible.Load(); v > 2*e {
		t.Errorf("%d visible errors and only %d answers: the cases show little", v, e)
	}
}

// try runs a case. It returns what is wrong with a success, or the visible error.
func (c *odd) try(t *testing.T, tr *Transport, plain *http.Transport, direct, u string) (wrong string, visible error) {
	ask := func(u string) *http.Request {
		r := request(t, http.MethodGet, u, nil)
		if c.asked != "" {
			r.Header.Set("Range", c.asked)
		}
		return r
	}
	resp, err := plain.RoundTrip(ask(direct))
	if err != nil {
		return "directly: " + err.Error(), nil
	}
	want, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return "directly: " + err.Error(), nil
	}
	status := resp.StatusCode
	var got []byte
	if c.way == "RoundTrip" {
		if resp, err = tr.RoundTrip(ask(u)); err != nil {
			return "", err
		}
		got, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	} else {
		var m memory
		resp, _, err = tr.Download(t.Context(), ask(u), &m)
		got = m.b
	}
	if err != nil {
		return "", err
	}
	if resp.StatusCode == status && bytes.Equal(got, want) && (c.way == "RoundTrip" || status == http.StatusOK || strings.Contains(c.asked, ",")) {
		return "", nil
	}
	// The object, or the range of it that was asked for, is right whatever a direct fetch brings.
	part := byterange.Range{End: c.object.Size}
	if spec, ok := byterange.ParseRange(c.asked); ok && resp.StatusCode == http.StatusPartialContent {
		if c.way == "RoundTrip" { // its caller checks the range
			given, err := byterange.ParseContentRange(resp.Header.Get("Content-Range"))
			if err != nil {
				return err.Error(), nil
			}
			part = given.Range
		} else if part, ok = spec.Resolve(c.object.Size); !ok {
			return "a range beyond the end", nil
		}
	} else if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("status %d with %d bytes, directly %d with %d", resp.StatusCode, len(got), status, len(want)), nil
	}
	other := c.object // of ot.NewVersion: which node answers is not certain
	other.Seed += 0x5eed
	if !bytes.Equal(got, c.object.Bytes(part.Start, part.End)) &&
		(!strings.Contains(c.name, "other version") || !bytes.Equal(got, other.Bytes(part.Start, part.End))) {
		return fmt.Sprintf("status %d, %d bytes that are not %v", resp.StatusCode, len(got), part), nil
	}
	return "", nil
}

// memory is a file in memory.
type memory struct{ b []byte }

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if need := off + int64(len(p)) - int64(len(m.b)); need > 0 {
		m.b = append(m.b, make([]byte, need)...)
	}
	return copy(m.b[off:], p), nil
}
