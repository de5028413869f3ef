package cli

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// redraw is the interval at which bars are drawn.
const redraw = 200 * time.Millisecond

// console writes text for the user, above the bars while there are any. It is safe for concurrent use.
type console struct {
	plain io.Writer
	raw   io.Writer // output for bars

	mu   sync.Mutex
	bars *mpb.Progress
}

// Write implements io.Writer, for whole lines.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bars != nil {
		if _, err := io.WriteString(c.bars, shown(string(p))); err == nil {
			return len(p), nil
		}
	}
	return c.plain.Write(p)
}

func (c *console) show(p *mpb.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bars = p
}

// display draws a bar for a download and a line for each link, until it is closed.
type display struct {
	console  *console
	progress *mpb.Progress
	bar      *mpb.Bar
	stop     chan struct{}
	drawn    sync.WaitGroup

	mu    sync.Mutex
	frame frame
}

func newDisplay(c *console, m *get.Meter, t http.RoundTripper) *display {
	d := &display{console: c, stop: make(chan struct{})}
	d.progress = mpb.New(mpb.WithOutput(c.raw), mpb.WithAutoRefresh(), mpb.WithRefreshRate(redraw))
	text := func(f func(frame) string) decor.Decorator {
		return decor.Any(func(decor.Statistics) string { return f(d.now()) })
	}
	lines := mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error {
		_, err := io.WriteString(w, d.now().links())
		return err
	})
	d.bar = d.progress.New(0, mpb.BarStyle(),
		mpb.PrependDecorators(text(frame.title)), mpb.AppendDecorators(text(frame.sum)), mpb.BarExtender(lines, false))
	c.show(d.progress)
	s := newSpeeds(m, t)
	d.update(s.look(time.Now()))
	d.drawn.Go(func() { d.follow(s) })
	return d
}

// follow updates the frame for each drawing.
func (d *display) follow(s *speeds) {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case now := <-tick.C:
			d.update(s.look(now))
		}
	}
}

func (d *display) update(f frame) {
	d.mu.Lock()
	d.frame = f
	d.mu.Unlock()
	d.bar.SetTotal(max(f.size, f.have+1), false) // never complete: close ends it
	d.bar.SetCurrent(f.have)
}

func (d *display) now() frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frame
}

// close erases the drawn lines.
func (d *display) close() {
	close(d.stop)
	d.drawn.Wait()
	d.bar.Abort(true)
	d.progress.Wait()
	d.console.show(nil)
}

// frame is the content of one drawing of the display.
type frame struct {
	file       string
	have, size int64 // size -1 = unknown
	rate       float64
	each       []linkFrame
}

type linkFrame struct {
	name, state string
	bytes       int64
	rate        float64
}

const maxTitle = 30 // runes

func (f frame) title() string {
	switch f.file {
	case "":
		return "connecting "
	case "-":
		return "standard output "
	}
	name := []rune(shown(filepath.Base(f.file)))
	if len(name) > maxTitle {
		name = append(name[:maxTitle-1], '…')
	}
	return string(name) + " "
}

// sum returns the progress of the download as text.
func (f frame) sum() string {
	if f.size < 0 {
		return fmt.Sprintf(" %s, %s", megabytes(f.have), megabits(f.rate))
	}
	text := fmt.Sprintf(" %s of %s, %s", megabytes(f.have), megabytes(f.size), megabits(f.rate))
	if left := f.size - f.have; left > 0 && f.rate > 0 && float64(left)/f.rate < 100*3600 {
		text += fmt.Sprintf(", %v left", (time.Duration(float64(left)/f.rate*1e9) + time.Second).Truncate(time.Second))
	}
	return text
}

// links returns a line for each link.
func (f frame) links() string {
	var b strings.Builder
	for _, l := range f.each {
		fmt.Fprintf(&b, "  %-15s %14s %12s  %s\n", shown(l.name), megabits(l.rate), megabytes(l.bytes), shown(l.state))
	}
	return b.String()
}

// statuser is a Transport that reports the state of its links.
type statuser interface{ Status() transport.Status }

// speeds turns counters into rates.
type speeds struct {
	meter *get.Meter
	links statuser // nil = the state of links is unknown
	sum   gauge
	each  map[string]*gauge
}

func newSpeeds(m *get.Meter, t http.RoundTripper) *speeds {
	links, _ := t.(statuser)
	return &speeds{meter: m, links: links, each: map[string]*gauge{}}
}

// look returns a frame with the current state.
func (s *speeds) look(now time.Time) frame {
	var f frame
	f.file, f.have, f.size = s.meter.Now()
	f.rate = s.sum.at(now, f.have)
	if s.links != nil {
		for _, l := range s.links.Status().Links {
			state := l.State
			if l.Reason != "" && l.State != "up" {
				state += " (" + l.Reason + ")"
			}
			f.each = append(f.each, linkFrame{name: l.Name, state: state})
		}
	}
	for _, l := range s.meter.Links() {
		i := slices.IndexFunc(f.each, func(e linkFrame) bool { return e.name == l.Link })
		if i < 0 {
			i, f.each = len(f.each), append(f.each, linkFrame{name: l.Link})
		}
		f.each[i].bytes = l.Bytes
	}
	for i, l := range f.each {
		g := s.each[l.name]
		if g == nil {
			g = &gauge{}
			s.each[l.name] = g
		}
		f.each[i].rate = g.at(now, l.bytes)
	}
	return f
}

// gaugeSpan is the time over which rates are averaged.
const gaugeSpan = 3 * time.Second

// gauge measures the rate of a counter over the last gaugeSpan.
type gauge struct{ samples []sample }

type sample struct {
	at time.Time
	n  int64
}

// at takes a reading and returns bytes per second.
func (g *gauge) at(now time.Time, n int64) float64 {
	if k := len(g.samples); k > 0 && n < g.samples[k-1].n { // the download started again
		g.samples = g.samples[:0]
	}
	g.samples = append(g.samples, sample{now, n})
	for len(g.samples) > 2 && now.Sub(g.samples[1].at) >= gaugeSpan {
		g.samples = g.samples[1:]
	}
	first := g.samples[0]
	if d := now.Sub(first.at).Seconds(); d > 0 {
		return float64(n-first.n) / d
	}
	return 0
}
