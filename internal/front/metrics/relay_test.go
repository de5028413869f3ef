package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/relay"
)

func TestRelay(t *testing.T) {
	h := Relay(func() relay.ServerStatus {
		return relay.ServerStatus{
			Clients: []relay.ClientUse{
				{Key: "abc", Sessions: 1, Lanes: 2, Flows: 3, Bytes: 1e6, Refused: map[string]int64{"month": 4}},
				{Key: "def", Sessions: 1},
			},
			Held: 5, Memory: 6, Turned: 7, Draining: true,
		}
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`tributary_relay_sessions{client="abc"} 1`,
		`tributary_relay_lanes{client="abc"} 2`,
		`tributary_relay_flows{client="abc"} 3`,
		`tributary_relay_flows{client="def"} 0`,
		`tributary_relay_bytes_total{client="abc"} 1e+06`,
		`tributary_relay_refusals_total{client="abc",reason="month"} 4`,
		`tributary_relay_memory_bytes 5`,
		`tributary_relay_memory_limit_bytes 6`,
		`tributary_relay_connections_turned_away_total 7`,
		`tributary_relay_draining 1`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}
