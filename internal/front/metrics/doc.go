// Package metrics exports the engine's activity to Prometheus. No other package imports Prometheus.
//
// It defines the names of the metrics: prefix tributary_, base units (bytes, seconds), _total for counters. Labels are
// the link, the state, the result and the reason, never a host or a URL (R195). There are two sources: events, which
// are counted when they happen (Metrics.Observe), and the engine's status, which is read at each scrape (states, rates,
// occupancy).
//
// Observe is safe for concurrent use, does not block and does not allocate once it has seen a link and a reason: label
// values are resolved once. Reasons are an enumeration defined by Tributary; beyond maxSeries values a reason counts as
// "other", so that a mistake elsewhere cannot make the memory grow.
package metrics
