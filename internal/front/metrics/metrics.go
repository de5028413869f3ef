package metrics

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// Metrics counts events and serves the result. It has its own registry.
type Metrics struct {
	registry *prometheus.Registry
	status   func() engine.Status

	started     *counters
	ended       *counters
	passed      *counters
	decisions   *counters
	transitions *counters
	hedges      *counters
	received    *counters
	waste       *counters
	attempts    *counters
	differing   *counters
	delivered   prometheus.Counter
	duration    prometheus.Histogram
}

var _ engine.Observer = (*Metrics)(nil)

// New returns metrics that call status at every scrape and every health check, and lanes at every scrape, from any
// goroutine. lanes returns the state of the client of a relay, false if none is used.
func New(version string, status func() engine.Status, lanes func() (relay.Status, bool)) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{
		registry: r,
		status:   status,

		started: newCounters(r, "transfers_started_total", "Transfers started."),
		ended:   newCounters(r, "transfers_total", "Transfers ended, by result.", "result"),
		passed: newCounters(r, "pass_through_total",
			"Requests passed through on one link, by reason (docs/ARCHITECTURE.md lists them).", "reason"),
		decisions: newCounters(r, "scheduler_decisions_total", "Decisions of the scheduler, by link and reason.",
			"link", "reason"),
		transitions: newCounters(r, "link_transitions_total", "Changes of a link's state, by the new state.", "link",
			"state"),
		hedges: newCounters(r, "hedges_total",
			"Times that bytes outstanding on this link were also requested over another link, by reason.",
			"link", "reason"),
		received: newCounters(r, "link_received_bytes_total", "Body bytes received, including second copies.", "link"),
		waste: newCounters(r, "link_waste_bytes_total", "Body bytes received that were second copies or not wanted.",
			"link"),
		attempts: newCounters(r, "attempts_total", "Attempts ended, by link and outcome.", "link", "reason"),
		differing: newCounters(r, "spot_checks_failed_total",
			"Times that a link left a transfer because its bytes differed from those of the other links.", "link"),

		delivered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tributary_transfer_bytes_total", Help: "Body bytes that ended transfers delivered to clients.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tributary_transfer_duration_seconds", Help: "Duration of transfers.",
			Buckets: []float64{0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000},
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tributary_build_info", Help: "Always 1; the labels describe the build.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	r.MustRegister(m.delivered, m.duration, build, statusCollector(status), laneCollector(lanes),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Observe counts one event.
func (m *Metrics) Observe(e engine.Event) {
	switch e.Kind {
	case engine.EventTransferStarted:
		m.started.get(labels{}).Inc()
	case engine.EventTransferEnded:
		m.ended.get(labels{e.Reason}).Inc()
		m.delivered.Add(float64(e.Bytes))
		m.duration.Observe(e.Took.Seconds())
	case engine.EventPassedThrough:
		m.passed.get(labels{e.Reason}).Inc()
	case engine.EventDecision:
		m.decisions.get(labels{e.Link, e.Reason}).Inc()
	case engine.EventLinkState:
		m.transitions.get(labels{e.Link, e.State}).Inc()
	case engine.EventHedge:
		m.hedges.get(labels{e.Link, e.Reason}).Inc()
	case engine.EventReceived:
		m.received.get(labels{e.Link}).Add(float64(e.Bytes))
		if e.Waste > 0 {
			m.waste.get(labels{e.Link}).Add(float64(e.Waste))
		}
	case engine.EventAttemptEnded:
		m.attempts.get(labels{e.Link, e.Reason}).Inc()
	case engine.EventSpotCheckFailed:
		m.differing.get(labels{e.Link}).Inc()
	}
}

// Handler returns a handler that serves the metrics as text, to every client.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
