package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tributary-http/tributary/internal/net/relay"
)

var (
	relaySessions = desc("relay_sessions",
		"Sessions of a client: one per daemon that is connected, or was within the last minute.", "client")
	relayLanes = desc("relay_lanes", "Connections of a client, one per link.", "client")
	relayFlows = desc("relay_flows", "Open tunnels of a client.", "client")
	relayBytes = desc("relay_bytes_total", "Bytes that the tunnels of a client have carried, both directions.",
		"client")
	relayRefused = desc("relay_refusals_total",
		"Tunnels of a client that were refused, or ended by its limits, by reason (docs/RELAY.md).", "client", "reason")
	relayHeld   = desc("relay_memory_bytes", "Bytes that the tunnels of all clients hold or have been promised.")
	relayMemory = desc("relay_memory_limit_bytes", "Limit of the bytes that tunnels may hold or be promised.")
	relayTurned = desc("relay_connections_turned_away_total",
		"Connections refused because of an unknown key, or because there were too many.")
	relayDraining = desc("relay_draining", "1 while the server shuts down and refuses new tunnels.")
)

// Relay returns a handler that serves the activity of a relay server, to every client. It names the relay's clients by
// their public keys, and never names a destination. It calls status at every scrape, from any goroutine.
func Relay(status func() relay.ServerStatus) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(relayCollector(status), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// relayCollector reads the status once per scrape.
type relayCollector func() relay.ServerStatus

// Describe implements prometheus.Collector.
func (relayCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		relaySessions, relayLanes, relayFlows, relayBytes, relayRefused, relayHeld, relayMemory, relayTurned,
		relayDraining,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (status relayCollector) Collect(ch chan<- prometheus.Metric) {
	s := status()
	send := sender(ch)
	for _, c := range s.Clients {
		key := valid(string(c.Key))
		send(relaySessions, prometheus.GaugeValue, float64(c.Sessions), key)
		send(relayLanes, prometheus.GaugeValue, float64(c.Lanes), key)
		send(relayFlows, prometheus.GaugeValue, float64(c.Flows), key)
		send(relayBytes, prometheus.CounterValue, float64(c.Bytes), key)
		for reason, n := range c.Refused {
			send(relayRefused, prometheus.CounterValue, float64(n), key, reason)
		}
	}
	send(relayHeld, prometheus.GaugeValue, float64(s.Held))
	send(relayMemory, prometheus.GaugeValue, float64(s.Memory))
	send(relayTurned, prometheus.CounterValue, float64(s.Turned))
	send(relayDraining, prometheus.GaugeValue, oneIf(s.Draining))
}
