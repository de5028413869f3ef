package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// maxSeries is the maximum number of series of one metric.
const maxSeries = 256

// labels are the values of up to two labels.
type labels [2]string

// counters is a counter with labels whose values are resolved once: get neither locks nor allocates for values that it
// has already seen.
type counters struct {
	vec    *prometheus.CounterVec
	labels int

	known atomic.Pointer[map[labels]prometheus.Counter] // copied on write
	mu    sync.Mutex                                    // guards writes
}

func newCounters(r prometheus.Registerer, name, help string, names ...string) *counters {
	c := &counters{
		vec:    prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tributary", Name: name, Help: help}, names),
		labels: len(names),
	}
	c.known.Store(&map[labels]prometheus.Counter{})
	r.MustRegister(c.vec)
	return c
}

// get returns the counter for the values; values for labels that the metric does not have are empty.
func (c *counters) get(l labels) prometheus.Counter {
	if counter, ok := (*c.known.Load())[l]; ok {
		return counter
	}
	return c.add(l)
}

func (c *counters) add(l labels) prometheus.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if counter, ok := known[l]; ok {
		return counter
	}
	if len(known) >= maxSeries {
		for i := range c.labels {
			l[i] = "other"
		}
		return c.vec.WithLabelValues(l[:c.labels]...)
	}
	values := [...]string{valid(l[0]), valid(l[1])}
	counter := c.vec.WithLabelValues(values[:c.labels]...)
	known = maps.Clone(known)
	known[l] = counter
	c.known.Store(&known)
	return counter
}

// valid converts a string to a label value: an interface name may contain any bytes, a label value only UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "?") }
