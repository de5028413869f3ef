package main

import (
	"slices"
	"strings"

	"github.com/tributary-http/tributary/lab/netlab"
)

// result is the result of a benchmark of one scenario.
type result struct {
	Scenario   string             `json:"scenario"`
	Size       int64              `json:"size"`
	Origin     string             `json:"origin"`
	HTTPS      bool               `json:"https,omitempty"`
	Upload     bool               `json:"upload,omitempty"`
	Congestion string             `json:"congestion_control"`
	Seed       uint64             `json:"seed"`          // for the order of the rounds
	Bound      float64            `json:"bound_seconds"` // physical
	Limit      []float64          `json:"limit_seconds"` // per round
	Plain      int64              `json:"plain_bytes"`   // on the link for a plain download; see plainBytes
	Links      []string           `json:"links"`
	Contenders []*contenderResult `json:"contenders"`

	limits []measurement
}

// contenderResult is the result of one contender. A failed round counts as 0 % of the limit and is left out of all
// other values.
type contenderResult struct {
	Name      string     `json:"name"`
	Percent   quartiles  `json:"percent"`  // limit / contender, paired by round
	Physical  quartiles  `json:"physical"` // bound / contender
	LinkDelta quartiles  `json:"link_delta"`
	Waste     quartiles  `json:"waste"`
	InOrder   *quartiles `json:"in_order,omitempty"`
	Pause     *quartiles `json:"pause,omitempty"`
	PauseAt   float64    `json:"pause_at,omitempty"` // when the longest pause of all rounds began
	// if a link returned, over the rounds in which it was used again
	Back     *quartiles     `json:"back,omitempty"`
	Most     map[string]int `json:"most_connections"` // maximum per link, in any round
	Requests quartiles      `json:"requests"`
	CPUPerGB *float64       `json:"cpu_per_gb,omitempty"` // median, seconds
	Joules   float64        `json:"joules,omitempty"`     // median
	Failed   int            `json:"failed,omitempty"`     // rounds
	Runs     []measurement  `json:"runs"`

	plain bool
}

// add records a round.
func (c *contenderResult) add(r measurement, limit, bound float64) {
	if r.Error == "" && r.Seconds > 0 {
		r.Percent = 100 * limit / r.Seconds
		r.Physical = 100 * bound / r.Seconds
	}
	c.Runs = append(c.Runs, r)
}

// plainBytes returns the bytes of a plain download of the object over a link, headers included: measured if a contender
// is a plain download, otherwise computed for full packets.
func (r *result) plainBytes() int64 {
	const perPacket, handshake, head = 52, 60 + 52 + 52, 52 + 300 // SYN-ACK, ACK and FIN; the response's head
	plain := r.Size + (r.Size/1448+1)*perPacket + handshake + head
	measured := int64(0)
	for _, c := range r.Contenders {
		if !c.plain {
			continue
		}
		var bytes []float64
		for _, run := range c.good() {
			bytes = append(bytes, float64(run.Delivered))
		}
		if median := int64(quartilesOf(bytes).Median); median > 0 && (measured == 0 || median < measured) {
			measured = median
		}
	}
	if measured > 0 {
		return measured
	}
	return plain
}

// good returns the rounds that did not fail.
func (c *contenderResult) good() []measurement {
	return slices.DeleteFunc(slices.Clone(c.Runs), func(r measurement) bool { return r.Error != "" })
}

// sum fills in the summaries once all rounds are complete.
func (r *result) sum() {
	r.Plain = r.plainBytes()
	for _, c := range r.Contenders {
		for i := range c.Runs {
			if run := &c.Runs[i]; run.Error == "" {
				run.Waste = 100 * float64(run.Delivered-r.Plain) / float64(r.Size)
			}
		}
		c.sum(r.Size)
	}
}

func (c *contenderResult) sum(size int64) {
	good := c.good()
	of := func(runs []measurement, value func(measurement) float64) quartiles {
		var values []float64
		for _, r := range runs {
			values = append(values, value(r))
		}
		return quartilesOf(values)
	}
	c.Failed = len(c.Runs) - len(good)
	c.Percent = of(c.Runs, func(r measurement) float64 { return r.Percent })
	c.Physical = of(c.Runs, func(r measurement) float64 { return r.Physical })
	c.LinkDelta = of(good, func(r measurement) float64 { return r.LinkDelta })
	c.Waste = of(good, func(r measurement) float64 { return r.Waste })
	c.Joules = of(good, func(r measurement) float64 { return r.Joules }).Median
	c.Requests = of(good, func(r measurement) float64 { return float64(r.Requests) })
	if cpu := of(good, func(r measurement) float64 { return r.CPU }).Median / float64(size) * 1e9; cpu > 0 {
		c.CPUPerGB = &cpu
	}
	c.Most = map[string]int{}
	var longest float64
	for _, r := range good {
		for link, n := range r.Connections {
			c.Most[link] = max(c.Most[link], n)
		}
		if r.Pause != nil && *r.Pause > longest {
			longest, c.PauseAt = *r.Pause, *r.PauseAt
		}
	}
	seen := slices.DeleteFunc(slices.Clone(good), func(r measurement) bool { return r.InOrder == nil })
	if len(seen) > 0 {
		order := of(seen, func(r measurement) float64 { return *r.InOrder })
		pause := of(seen, func(r measurement) float64 { return *r.Pause })
		c.InOrder, c.Pause = &order, &pause
	}
	again := slices.DeleteFunc(good, func(r measurement) bool { return r.Back == nil })
	if len(again) > 0 {
		back := of(again, func(r measurement) float64 { return *r.Back })
		c.Back = &back
	}
}

// typical returns the index of the round whose share of the limit is nearest to the median, or -1 if all failed.
func (c *contenderResult) typical() int {
	best := -1
	for i, r := range c.Runs {
		if r.Error != "" {
			continue
		}
		off := func(r measurement) float64 { return max(r.Percent-c.Percent.Median, c.Percent.Median-r.Percent) }
		if best < 0 || off(r) < off(c.Runs[best]) {
			best = i
		}
	}
	return best
}

// errors returns the distinct error texts.
func (c *contenderResult) errors() []string {
	var all []string
	for _, r := range c.Runs {
		if text := strings.TrimSpace(r.Error); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// title returns the name of the measurement.
func (r *result) title() string {
	name := r.Scenario
	if name == "" {
		name = "lab"
	}
	text := name + ", " + netlab.Bytes(r.Size).String()
	if r.HTTPS {
		text += ", https"
	}
	if r.Upload {
		text += ", upload"
	}
	if r.Origin != "" && r.Origin != "nginx" {
		text += ", " + r.Origin
	}
	return text
}
