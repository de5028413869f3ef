package cli

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/front/get"
)

// progressEvery is the interval of the lines of progress where no bars can be drawn.
const progressEvery = 10 * time.Second

// lines writes a line of progress every progressEvery, until it is closed.
type lines struct {
	stop    chan struct{}
	written sync.WaitGroup
}

func newLines(to *console, m *get.Meter, t http.RoundTripper) *lines {
	l := &lines{stop: make(chan struct{})}
	s := newSpeeds(m, t)
	l.written.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		s.look(time.Now())
		for {
			select {
			case <-l.stop:
				return
			case now := <-tick.C:
				fmt.Fprintln(to, s.look(now).line())
			}
		}
	})
	return l
}

func (l *lines) close() {
	close(l.stop)
	l.written.Wait()
}

// line is a frame as one line of text.
func (f frame) line() string {
	var links []string
	for _, l := range f.each {
		if l.bytes > 0 {
			links = append(links, shown(l.name)+" "+megabytes(l.bytes))
		}
	}
	text := strings.TrimSuffix(f.title(), " ") + ":" + f.sum()
	if len(links) > 0 {
		text += " (" + strings.Join(links, ", ") + ")"
	}
	return text
}

// nothing shows no progress.
type nothing struct{}

func (nothing) close() {}
