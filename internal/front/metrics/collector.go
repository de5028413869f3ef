package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-http/tributary/internal/net/engine"
)

// states are the values of the state label; for each link exactly one of them has the value 1.
var states = [...]string{"up", "suspect", "banned", "probing", "down"}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_"+name, help, labels, nil)
}

var (
	linkState   = desc("link_state", "1 for the state that the link is in, 0 for the others.", "link", "state")
	linkGoodput = desc("link_goodput_bytes_per_second", "First-copy body bytes per second, all transfers.", "link")
	linkRTT     = desc("link_rtt_seconds", "Smoothed round-trip time, 0 if unknown.", "link")
	linkBans    = desc("link_bans_total", "Times that the link was banned.", "link")
	linkJoules  = desc("link_radio_joules_total",
		"Modelled energy that the link's radio has used for downloads, including its tail; 0 if the radio is unknown.",
		"link")

	undividedOpen = desc("link_undivided_open", "Open tunnels and undivided requests.", "link")
	undividedRate = desc("link_undivided_bytes_per_second",
		"Bytes per second of open tunnels and undivided requests, both directions.", "link")
	undividedBytes = desc("link_undivided_bytes_total", "Bytes of tunnels and undivided requests, both directions.",
		"link")

	running = desc("transfers_running", "Running transfers.")
	budget  = desc("budget_bytes", "Memory budget for reordering, all transfers together.")
	granted = desc("budget_granted_bytes", "Bytes of the budget that are granted to transfers.")
	held    = desc("budget_held_bytes", "Bytes of the budget that hold data.")
	window  = desc("window_bytes", "Sum of the reorder windows of running transfers.")
	ahead   = desc("window_held_bytes",
		"Bytes received beyond the next in-order offset, all running transfers together.")
	fullest = desc("window_occupancy_ratio", "The fullest window: held bytes divided by the window, 0 to 1.")
	oldest  = desc("transfer_oldest_seconds", "Age of the longest-running transfer, 0 if none runs.")
)

// statusCollector reads the status once per scrape.
type statusCollector func() engine.Status

// Describe implements prometheus.Collector.
func (statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		linkState, linkGoodput, linkRTT, linkBans, linkJoules, undividedOpen, undividedRate, undividedBytes, running,
		budget, granted, held, window, ahead, fullest, oldest,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (status statusCollector) Collect(ch chan<- prometheus.Metric) {
	s := status()
	send := sender(ch)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) { send(d, prometheus.GaugeValue, v, labels...) }
	for _, l := range s.Links {
		name := valid(l.Name)
		for _, state := range states {
			gauge(linkState, oneIf(l.State == state), name, state)
		}
		gauge(linkGoodput, l.Goodput-l.UndividedRate, name)
		gauge(linkRTT, l.RTT, name)
		send(linkBans, prometheus.CounterValue, float64(l.Bans), name)
		send(linkJoules, prometheus.CounterValue, l.Joules, name)
		gauge(undividedOpen, float64(l.Undivided), name)
		gauge(undividedRate, l.UndividedRate, name)
		send(undividedBytes, prometheus.CounterValue, float64(l.UndividedBytes), name)
	}

	var windows, beyond, full, age float64
	for _, t := range s.Transfers {
		windows += float64(t.Window)
		beyond += float64(t.Held)
		if t.Window > 0 {
			full = max(full, float64(t.Held)/float64(t.Window))
		}
		age = max(age, t.Seconds)
	}
	gauge(running, float64(len(s.Transfers)))
	gauge(budget, float64(s.Budget.Total))
	gauge(granted, float64(s.Budget.Granted))
	gauge(held, float64(s.Budget.Held))
	gauge(window, windows)
	gauge(ahead, beyond)
	gauge(fullest, full)
	gauge(oldest, age)
}

// sender returns a function that sends a metric.
func sender(ch chan<- prometheus.Metric) func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
	return func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
