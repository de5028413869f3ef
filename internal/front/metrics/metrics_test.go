package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// scrape returns the text that Prometheus would get.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func noRelay() (relay.Status, bool) { return relay.Status{}, false }

func status(links ...engine.LinkStatus) func() engine.Status {
	return func() engine.Status {
		return engine.Status{
			Links:  links,
			Budget: engine.Memory{Total: 64 << 20, Granted: 32 << 20, Held: 3 << 20},
			Transfers: []engine.TransferStatus{
				{ID: 1, Window: 16 << 20, Held: 4 << 20, Seconds: 60},
				{ID: 2, Window: 16 << 20, Held: 8 << 20},
			},
		}
	}
}

func TestMetrics(t *testing.T) {
	m := New("v1.2.3", status(
		engine.LinkStatus{Name: "wlan0", State: "up", Goodput: 1_000_500, RTT: 0.025, Undivided: 3, UndividedBytes: 7000, UndividedRate: 500},
		engine.LinkStatus{Name: "wwan0", State: "banned", Bans: 2},
	), func() (relay.Status, bool) {
		return relay.Status{Streams: 4, Failed: 2, Refusal: "its month is used up", Lanes: []relay.LaneStatus{
			{Link: "wlan0", Up: true, RTT: 0.03, Bytes: 5000}, {Link: "wwan0"},
		}}, true
	})
	for _, e := range []engine.Event{
		{Kind: engine.EventTransferStarted},
		{Kind: engine.EventReceived, Link: "wlan0", Bytes: 1000, Waste: 10},
		{Kind: engine.EventReceived, Link: "wlan0", Bytes: 500},
		{Kind: engine.EventDecision, Link: "wlan0", Reason: "head"},
		{Kind: engine.EventHedge, Link: "wwan0", Reason: "suspect"},
		{Kind: engine.EventLinkState, Link: "wwan0", State: "banned", Reason: "silent"},
		{Kind: engine.EventAttemptEnded, Link: "wwan0", Reason: "silent"},
		{Kind: engine.EventSpotCheckFailed, Link: "wwan0"},
		{Kind: engine.EventPassedThrough, Reason: "small"},
		{Kind: engine.EventTransferEnded, Reason: "ok", Bytes: 1490, Took: time.Second},
	} {
		m.Observe(e)
	}
	body := scrape(t, m)
	for _, want := range []string{
		`tributary_transfers_started_total 1`,
		`tributary_transfers_total{result="ok"} 1`,
		`tributary_transfer_bytes_total 1490`,
		`tributary_transfer_duration_seconds_sum 1`,
		`tributary_pass_through_total{reason="small"} 1`,
		`tributary_scheduler_decisions_total{link="wlan0",reason="head"} 1`,
		`tributary_link_transitions_total{link="wwan0",state="banned"} 1`,
		`tributary_hedges_total{link="wwan0",reason="suspect"} 1`,
		`tributary_link_received_bytes_total{link="wlan0"} 1500`,
		`tributary_link_waste_bytes_total{link="wlan0"} 10`,
		`tributary_attempts_total{link="wwan0",reason="silent"} 1`,
		`tributary_spot_checks_failed_total{link="wwan0"} 1`,
		`tributary_link_state{link="wlan0",state="up"} 1`,
		`tributary_link_state{link="wlan0",state="banned"} 0`,
		`tributary_link_state{link="wwan0",state="banned"} 1`,
		`tributary_link_goodput_bytes_per_second{link="wlan0"} 1e+06`,
		`tributary_link_rtt_seconds{link="wlan0"} 0.025`,
		`tributary_link_bans_total{link="wwan0"} 2`,
		`tributary_lane_up{link="wlan0"} 1`,
		`tributary_lane_up{link="wwan0"} 0`,
		`tributary_lane_rtt_seconds{link="wlan0"} 0.03`,
		`tributary_lane_bytes_total{link="wlan0"} 5000`,
		`tributary_lane_tunnels 4`,
		`tributary_lane_refused 1`,
		`tributary_lane_tunnels_refused_total 2`,
		`tributary_link_undivided_open{link="wlan0"} 3`,
		`tributary_link_undivided_bytes_total{link="wlan0"} 7000`,
		`tributary_link_undivided_bytes_per_second{link="wlan0"} 500`,
		`tributary_transfers_running 2`,
		`tributary_budget_bytes 6.7108864e+07`,
		`tributary_window_held_bytes 1.2582912e+07`,
		`tributary_window_occupancy_ratio 0.5`,
		`version="v1.2.3"`,
		`go_goroutines`,
		`process_start_time_seconds`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	m := New("", status(), noRelay)
	events := []engine.Event{
		{Kind: engine.EventReceived, Link: "wlan0", Bytes: 16 << 10, Waste: 1},
		{Kind: engine.EventDecision, Link: "wlan0", Reason: "head"},
		{Kind: engine.EventAttemptEnded, Link: "wlan0", Reason: "complete"},
	}
	observe := func() {
		for _, e := range events {
			m.Observe(e)
		}
	}
	observe()
	if n := testing.AllocsPerRun(100, observe); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestObserveConcurrently(t *testing.T) {
	m := New("", status(), noRelay)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 1000 {
				m.Observe(engine.Event{Kind: engine.EventReceived, Link: fmt.Sprint("l", (i+j)%7), Bytes: 1})
			}
		})
	}
	wg.Wait()
	body := scrape(t, m)
	if total := sum(t, body, "tributary_link_received_bytes_total{"); total != 4000 {
		t.Errorf("%v bytes in all, want 4000", total)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	m := New("", status(), noRelay)
	const events = maxSeries + 100
	for i := range events {
		m.Observe(engine.Event{Kind: engine.EventPassedThrough, Reason: fmt.Sprintf("reason%d", i)})
	}
	m.Observe(engine.Event{Kind: engine.EventPassedThrough, Reason: "not UTF-8: \xff"})
	body := scrape(t, m)
	if n := strings.Count(body, "\ntributary_pass_through_total{"); n != maxSeries+1 {
		t.Errorf("%d series, want %d", n, maxSeries+1)
	}
	if total := sum(t, body, "tributary_pass_through_total{"); total != events+1 {
		t.Errorf("%v counted, want %d", total, events+1)
	}
}

func TestLabelsOfAnyBytes(t *testing.T) {
	m := New("", status(engine.LinkStatus{Name: "w\xff", State: "up"}), noRelay)
	m.Observe(engine.Event{Kind: engine.EventReceived, Link: "w\xff", Bytes: 1})
	if body := scrape(t, m); !strings.Contains(body, `received_bytes_total{link="w?"} 1`) {
		t.Error(body)
	}
}

// sum adds the values of the lines that start with prefix.
func sum(t *testing.T, body, prefix string) (total float64) {
	t.Helper()
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, prefix) {
			var v float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &v); err != nil {
				t.Fatal(err)
			}
			total += v
		}
	}
	return total
}
