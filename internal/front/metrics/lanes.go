package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-http/tributary/internal/net/relay"
)

var (
	laneUp    = desc("lane_up", "1 while the link has a lane to the relay.", "link")
	laneRTT   = desc("lane_rtt_seconds", "Smoothed round-trip time to the relay, 0 if unknown.", "link")
	laneBytes = desc("lane_bytes_total",
		"Bytes of the link's lanes to the relay, both directions; counted in link_undivided_bytes_total too.", "link")
	laneTunnels = desc("lane_tunnels", "Open tunnels through the relay.")
	laneFailed  = desc("lane_tunnels_refused_total", "Tunnels that the relay did not carry; they use one link.")
	laneRefused = desc("lane_refused", "1 while the relay refuses new tunnels, which then use one link.")
)

// laneCollector reads the state of the client of a relay once per scrape; false = there is no relay.
type laneCollector func() (relay.Status, bool)

// Describe implements prometheus.Collector.
func (laneCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{laneUp, laneRTT, laneBytes, laneTunnels, laneFailed, laneRefused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (status laneCollector) Collect(ch chan<- prometheus.Metric) {
	s, ok := status()
	if !ok {
		return
	}
	send := sender(ch)
	for _, l := range s.Lanes {
		name := valid(l.Link)
		send(laneUp, prometheus.GaugeValue, oneIf(l.Up), name)
		send(laneRTT, prometheus.GaugeValue, l.RTT, name)
		send(laneBytes, prometheus.CounterValue, float64(l.Bytes), name)
	}
	send(laneTunnels, prometheus.GaugeValue, float64(s.Streams))
	send(laneFailed, prometheus.CounterValue, float64(s.Failed))
	send(laneRefused, prometheus.GaugeValue, oneIf(s.Refusal != ""))
}
