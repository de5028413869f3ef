package deploy

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/front/metrics"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/relay"
)

const (
	alerts    = "prometheus/alerts.yml"
	dashboard = "grafana/tributary.json"
)

// scrape returns /metrics of an engine that saw every event once.
func scrape(t *testing.T) string {
	t.Helper()
	m := metrics.New("v1", func() engine.Status {
		return engine.Status{
			Links:     []engine.LinkStatus{{Name: "wlan0", State: "up"}},
			Transfers: []engine.TransferStatus{{Started: time.Now(), Window: 1}},
		}
	}, func() (relay.Status, bool) {
		return relay.Status{Lanes: []relay.LaneStatus{{Link: "wlan0", Up: true}}}, true
	})
	for _, e := range []engine.Event{
		{Kind: engine.EventTransferStarted},
		{Kind: engine.EventReceived, Link: "wlan0", Bytes: 1, Waste: 1},
		{Kind: engine.EventDecision, Link: "wlan0", Reason: "head"},
		{Kind: engine.EventHedge, Link: "wlan0", Reason: "silent"},
		{Kind: engine.EventLinkState, Link: "wlan0", State: "banned"},
		{Kind: engine.EventAttemptEnded, Link: "wlan0", Reason: "complete"},
		{Kind: engine.EventPassedThrough, Reason: "small"},
		{Kind: engine.EventTransferEnded, Reason: "ok", Took: time.Second},
		{Kind: engine.EventTransferEnded, Reason: "client_gone", Took: time.Second},
	} {
		m.Observe(e)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// expressions returns every PromQL expression of the alert rules and of the dashboard.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	rules, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (>-\n(?: {10}.*\n)+|.*)`).FindAllSubmatch(rules, -1) {
		all = append(all, strings.TrimPrefix(string(m[1]), ">-\n"))
	}
	if want := strings.Count(string(rules), "- alert:"); len(all) != want {
		t.Fatalf("%d expressions of %d alerts", len(all), want)
	}
	return append(all, panels(t)...)
}

// panels returns the expressions of the dashboard.
func panels(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(v.Definition); m != nil {
			all = append(all, m[1])
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d expressions in %s", len(all), dashboard)
	}
	return all
}

// Labels added by Prometheus itself, and the label of buckets.
var added = []string{"instance", "job", "le"}

// TestNamesExist checks every metric, label and value in the rules and the dashboard against /metrics.
func TestNamesExist(t *testing.T) {
	text := scrape(t)
	var (
		metric = regexp.MustCompile(`\b((?:tributary|go|process)_\w+)(?:\{([^}]*)\})?`)
		match  = regexp.MustCompile(`(\w+)(=~|!~|=|!=)"([^"]*)"`)
		by     = regexp.MustCompile(`\bby \(([^)]*)\)`)
	)
	named := map[string]bool{}
	for _, expr := range expressions(t) {
		var labels []string
		for _, m := range metric.FindAllStringSubmatch(expr, -1) {
			name := m[1]
			named[name] = true
			series := regexp.MustCompile(`(?m)^`+name+`(\{.*\})? `).FindAllString(text, -1)
			if len(series) == 0 {
				t.Errorf("%s does not exist: %s", name, expr)
			}
			all := strings.Join(series, "\n")
			for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(all, -1) {
				labels = append(labels, l[1])
			}
			for _, l := range match.FindAllStringSubmatch(m[2], -1) {
				if slices.Contains(added, l[1]) {
					continue
				}
				for _, value := range strings.Split(l[3], "|") {
					if !strings.Contains(all, l[1]+`="`+value+`"`) {
						t.Errorf("%s has no %s=%q: %s", name, l[1], value, expr)
					}
				}
			}
		}
		for _, m := range by.FindAllStringSubmatch(expr, -1) {
			for _, l := range strings.Split(m[1], ", ") {
				if !slices.Contains(added, l) && !slices.Contains(labels, l) {
					t.Errorf("no label %s: %s", l, expr)
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (tributary_\w+)`).FindAllStringSubmatch(text, -1) {
		if !named[m[1]] && !named[m[1]+"_bucket"] {
			t.Logf("neither rules nor dashboard show %s", m[1])
		}
	}
}

// TestRulesAreValid checks the rules with Prometheus itself.
func TestRulesAreValid(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("check", "rules", "alerts.yml")
	run("check", "config", "prometheus.yml")
	run("test", "rules", "alerts_test.yml")

	// The dashboard's expressions, as rules.
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$instance", ".*")
	var b bytes.Buffer
	b.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, expr := range panels(t) {
		quoted, err := json.Marshal(variables.Replace(expr))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("  - record: panel\n    expr: " + string(quoted) + "\n")
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	run("check", "rules", "--lint=none", file)
}
