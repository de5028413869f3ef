package netlab

import (
	"context"
	"crypto/x509"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// The row K-tail of docs/REPRODUCTION.md: the links of Nikravesh 2018 chapter 6, with the product's connections and nginx.
const (
	tailSize  = 2_000_000
	tailTimes = 5
)

func tailScenario() Scenario {
	return Scenario{Name: "k-tail", Congestion: "cubic", Links: []LinkSpec{
		Symmetric("wifi", 10*Mbit, 26*time.Millisecond), Symmetric("lte", 5*Mbit, 60*time.Millisecond),
	}}
}

// fetcher makes ranged requests for an object over one connection, as the product does.
type fetcher struct {
	t    *testing.T
	c    engine.Conn
	want *engine.Identity
	to   engine.Target
	id   uint32
}

func newFetcher(t *testing.T, l *Lab, over *Link, scheme string) *fetcher {
	t.Helper()
	cert, err := l.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(cert.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	dial := link.DialFunc(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
		return over.DialContext(ctx, network, addr)
	})
	host := OriginAddr.String()
	f := &fetcher{t: t, to: engine.Target{
		Scheme: scheme, Host: host, Addr: net.JoinHostPort(host, map[string]string{"http": "80", "https": "443"}[scheme]), Path: "/" + Bytes(tailSize).String(),
	}}
	pool := origin.New(roots)
	t.Cleanup(pool.Close)
	f.c, err = pool.Open(t.Context(), dial.Over(link.Link{Name: over.Name})[0], f.to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.c.Close)
	return f
}

// ask requests a range; the first answer determines the version for the others.
func (f *fetcher) ask(start, end int64) uint32 {
	f.t.Helper()
	f.id++
	a := engine.RangeRequest{ID: f.id, Target: f.to, Range: segment.Range{Start: start, End: end}, Want: f.want}
	if f.want != nil {
		a.IfRange = f.want.Validator
	}
	if err := f.c.Send(a); err != nil {
		f.t.Fatal(err)
	}
	return f.id
}

func (f *fetcher) next() io.ReadCloser {
	f.t.Helper()
	response, err := f.c.Next()
	if err != nil {
		f.t.Fatal(err)
	}
	if f.want == nil {
		f.want = &response.ID
	}
	return response.Body
}

// read reads n bytes, and returns the latest delay that was measured meanwhile.
func (f *fetcher) read(b io.Reader, n int64) (delay time.Duration) {
	f.t.Helper()
	for buf := make([]byte, 8<<10); n > 0; {
		k, err := b.Read(buf[:min(n, int64(len(buf)))])
		if n -= int64(k); err != nil {
			f.t.Fatal(err)
		}
		if p, ok := f.c.Sample(); ok && p.Delay > 0 {
			delay = p.Delay
		}
	}
	return delay
}

// rest reads a body to its end.
func (f *fetcher) rest(b io.Reader) int64 {
	f.t.Helper()
	n, err := io.Copy(io.Discard, b)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestTailBytes downloads 2 MB over HTTP/2, whose second half moves to another link when 200 kB have arrived. It measures
// how much nginx sends beyond the first half if the stream is reset at its new end, and if its window shrinks as soon as
// that end is known.
func TestTailBytes(t *testing.T) {
	l := start(t, tailScenario())
	n := serve(t, l)
	object(t, n, tailSize)
	const half, early = tailSize / 2, 200_000
	logs := 0
	for _, over := range l.Links() {
		extra := map[bool][]float64{}
		for i := range 2 * tailTimes {
			shrink := i%2 == 1
			f := newFetcher(t, l, over, "https")
			f.ask(0, 100)
			f.rest(f.next())
			id := f.ask(0, tailSize)
			body := f.next()
			f.read(body, early)
			if shrink {
				f.c.Cut(id, half)
				if got := f.rest(body); got != half-early {
					t.Fatalf("%d bytes, want %d", got, half-early)
				}
			} else {
				f.read(body, half-early)
				body.Close()
			}
			f.ask(half, half+100) // the connection still works
			if got := f.rest(f.next()); got != 100 {
				t.Fatalf("%d bytes, want 100", got)
			}
			f.c.Close()
			logs += 3
			for _, r := range logged(t, n, logs)[logs-3:] {
				if r.Protocol != "HTTP/2.0" {
					t.Errorf("asked over %s", r.Protocol)
				}
				if r.Range == "bytes=0-1999999" {
					extra[shrink] = append(extra[shrink], 100*(float64(r.BytesSent)/half-1))
				}
			}
		}
		for _, all := range extra {
			slices.Sort(all)
		}
		t.Logf("%s: beyond the first half: %.1f %% with a reset, %.1f %% with a smaller window (medians; %.1f and %.1f)", over.Name,
			extra[false][tailTimes/2], extra[true][tailTimes/2], extra[false], extra[true])
		if usual := extra[true][tailTimes/2]; usual > 4 {
			t.Errorf("%s: %.1f %% with a smaller window, want 4 at most", over.Name, usual)
		}
	}
}

// TestDelay measures, while 2 MB arrive, how long the answer to another request takes to begin, and compares that with
// the prediction: by PING over HTTP/2, by the kernel over HTTP/1.1, where an answer on the same connection would have to
// wait for the end of the previous one, so that another connection over the link is used. How close the prediction is
// depends on the machine's load; PING must beat the handshake.
func TestDelay(t *testing.T) {
	l := start(t, tailScenario())
	object(t, serve(t, l), tailSize)
	for _, scheme := range []string{"https", "http"} {
		for _, over := range l.Links() {
			var took, idle []time.Duration
			var off, blind []float64 // in percent, of the prediction and of the handshake
			for _, at := range []int64{200_000, 600_000, 1_000_000, 1_400_000} {
				for range tailTimes {
					f := newFetcher(t, l, over, scheme)
					other := f
					if scheme == "http" {
						other = newFetcher(t, l, over, scheme)
						other.ask(0, 100)
						other.rest(other.next())
					}
					f.ask(0, 100)
					f.rest(f.next())
					f.ask(0, tailSize)
					body := f.next()
					predicted := f.read(body, at)
					began := time.Now()
					other.ask(0, 100)
					if scheme == "https" {
						body.Close() // the next answer follows the bytes of this one that are under way
					}
					other.next()
					took, idle = append(took, time.Since(began)), append(idle, f.c.Info().RTT)
					wrong := func(guess time.Duration) float64 {
						return 100 * math.Abs(guess.Seconds()/took[len(took)-1].Seconds()-1)
					}
					off, blind = append(off, wrong(predicted)), append(blind, wrong(f.c.Info().RTT))
					f.c.Close()
					other.c.Close()
				}
			}
			for _, all := range [][]float64{off, blind} {
				slices.Sort(all)
			}
			slices.Sort(took)
			slices.Sort(idle)
			middle := len(off) / 2
			t.Logf("%s over %s: %v taken, %v without load; the prediction is off by %.0f %%, the handshake by %.0f (medians); %.0f",
				scheme, over.Name, took[middle], idle[middle], off[middle], blind[middle], off)
			if scheme == "https" && off[middle] > blind[middle] {
				t.Errorf("PING is off by %.0f %%, the handshake by %.0f", off[middle], blind[middle])
			}
		}
	}
}
