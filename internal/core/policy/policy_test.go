package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

const (
	up, suspect, banned, down = health.Up, health.Suspect, health.Banned, health.Down
)

func lte(t testing.TB) *energy.Radio {
	r, err := energy.FindRadio("galaxy-s3/lte")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFor has a row for each rule about which links a request may use.
func TestFor(t *testing.T) {
	radio := lte(t)
	type link = policy.Link
	wifi, cell, eth := link{Name: "wifi", State: up, Metric: 600}, link{Name: "lte", State: up, Metric: 700}, link{Name: "eth", State: up, Metric: 800}
	with := func(l link, change func(l *link)) link { change(&l); return l }
	metered := func(l *link) { l.Metered = true }
	untrusted := func(l *link) { l.Untrusted = true }
	refused := func(l *link) { l.Refused = true }
	in := func(s health.State) func(l *link) { return func(l *link) { l.State = s } }
	seen := func(l *link) { l.Seen, l.Carries = true, true }
	goal := func(name string) func(l *link) { return func(l *link) { l.Goal = name } }
	exposes := policy.Request{Exposes: true}
	tests := []struct {
		name    string
		request policy.Request
		links   []link
		order   []int8
		reasons []policy.Reason // nil = none
	}{
		{"the lowest metric first", policy.Request{}, []link{cell, wifi}, []int8{1, 0}, nil},
		{"metered links after all others", policy.Request{}, []link{with(wifi, metered), cell}, []int8{1, 0}, nil},
		{"a frugal link that is costly to wake after the others", policy.Request{}, []link{
			with(wifi, func(l *link) { l.Goal, l.Radio = schedule.FrugalGoal, radio }), cell,
		}, []int8{1, 0}, nil},
		{"overtaken links after the others, before metered ones", policy.Request{}, []link{
			with(wifi, func(l *link) { l.Late = true }), with(cell, metered), eth,
		}, []int8{2, 0, 1}, nil},
		{"silent links after those that answer", policy.Request{}, []link{with(wifi, in(suspect)), cell}, []int8{1, 0}, nil},

		{"the configuration leaves a link out", policy.Request{}, []link{
			with(wifi, func(l *link) { l.Disabled = true }), cell,
		}, []int8{1}, []policy.Reason{policy.Disabled, 0}},
		{"its data limit is reached", policy.Request{}, []link{
			with(wifi, func(l *link) { l.Spent = true }), cell,
		}, []int8{1}, []policy.Reason{policy.Spent, 0}},
		{"the request may not cost money", policy.Request{Unmetered: true}, []link{with(wifi, metered), cell}, []int8{1}, []policy.Reason{policy.Costs, 0}},
		{"and there is nothing else", policy.Request{Unmetered: true}, []link{with(wifi, metered)}, nil, []policy.Reason{policy.Costs}},
		{"the request avoids a link", policy.Request{Avoid: "wifi"}, []link{wifi, cell}, []int8{1}, []policy.Reason{policy.Avoided, 0}},

		{"R205 credentials over trusted links only", exposes, []link{with(wifi, untrusted), cell}, []int8{1}, []policy.Reason{policy.Exposed, 0}},
		{"R205 over one other link if no trusted one is up", exposes, []link{
			with(wifi, untrusted), with(cell, in(banned)), with(eth, untrusted),
		}, []int8{0, 1}, []policy.Reason{0, 0, policy.Exposed}},
		{"R205 a silent one may come back", exposes, []link{with(wifi, untrusted), with(cell, in(suspect))}, []int8{1}, []policy.Reason{policy.Exposed, 0}},
		{"R205 over the best of those that are not down", exposes, []link{
			with(with(wifi, untrusted), in(down)), with(cell, untrusted),
		}, []int8{1}, []policy.Reason{policy.Exposed, 0}},
		{"R205 one that costs nothing", exposes, []link{with(with(wifi, untrusted), metered), with(cell, untrusted)}, []int8{1}, []policy.Reason{policy.Exposed, 0}},
		{"R205 not one that may not carry it", policy.Request{Exposes: true, Unmetered: true}, []link{
			with(with(wifi, untrusted), metered), with(with(cell, untrusted), metered),
		}, nil, []policy.Reason{policy.Costs, policy.Costs}},
		{"R205 a trusted link that the request may not pay for is up", policy.Request{Exposes: true, Unmetered: true}, []link{
			with(wifi, untrusted), with(cell, metered),
		}, nil, []policy.Reason{policy.Exposed, policy.Costs}},
		{"R205 a trusted link that the request avoids is up", policy.Request{Exposes: true, Avoid: "lte"}, []link{
			with(wifi, untrusted), cell,
		}, nil, []policy.Reason{policy.Exposed, policy.Avoided}},
		{"R205 a trusted link that no request may use does not count", exposes, []link{
			with(wifi, untrusted), with(cell, func(l *link) { l.Spent = true }),
		}, []int8{0}, []policy.Reason{0, policy.Spent}},
		{"R205 a request that shows nothing", policy.Request{}, []link{with(wifi, untrusted), cell}, []int8{0, 1}, nil},
		{"R205 no further link sees a request that has begun", policy.Request{Exposes: true, Began: true}, []link{
			with(wifi, in(down)), with(cell, untrusted),
		}, []int8{0}, []policy.Reason{0, policy.Exposed}},
		{"R205 the one that saw it goes on beside a trusted one", policy.Request{Exposes: true, Began: true}, []link{
			wifi, with(with(cell, untrusted), seen),
		}, []int8{0, 1}, nil},

		{"R118 a link that was refused is a last resort", policy.Request{}, []link{with(wifi, refused), cell}, []int8{0, 1}, []policy.Reason{policy.OverRefused, 0}},
		{"R118 unless no other one is up", policy.Request{}, []link{with(wifi, refused), with(cell, in(banned))}, []int8{0, 1}, nil},
		{"R118 nor one that may carry it", policy.Request{Unmetered: true}, []link{with(wifi, refused), with(cell, metered)}, []int8{0}, []policy.Reason{0, policy.Costs}},

		{"what stands for many requests takes no metered link", policy.Request{Shared: true}, []link{wifi, with(cell, metered)}, []int8{0}, []policy.Reason{0, policy.Costs}},
		{"unless there are no others", policy.Request{Shared: true}, []link{with(wifi, metered), with(cell, metered)}, []int8{0, 1}, nil},

		{"at most two links", policy.Request{MaxLinks: 2}, []link{wifi, cell, eth}, []int8{0, 1}, []policy.Reason{0, 0, policy.Enough}},
		{"at most two links, metered ones last", policy.Request{MaxLinks: 2}, []link{with(wifi, metered), cell, eth}, []int8{1, 2}, []policy.Reason{policy.Enough, 0, 0}},
		{"at most two links of one that may be used", policy.Request{MaxLinks: 2, Unmetered: true}, []link{with(wifi, metered), cell}, []int8{1}, []policy.Reason{policy.Costs, 0}},
		{"a link that is banned does not count", policy.Request{MaxLinks: 1}, []link{with(wifi, in(banned)), cell, eth}, []int8{1}, []policy.Reason{policy.Enough, 0, policy.Enough}},
		{"nor one that does not serve the object", policy.Request{MaxLinks: 1, Began: true}, []link{
			with(wifi, func(l *link) { l.Out, l.Carries = true, true }), cell,
		}, []int8{1}, []policy.Reason{policy.Enough, 0}},
		{"one that carries keeps its place", policy.Request{MaxLinks: 1, Began: true}, []link{wifi, with(cell, seen)}, []int8{1}, []policy.Reason{policy.Enough, 0}},
		{"the first may be down: then it has its place", policy.Request{MaxLinks: 2}, []link{with(wifi, in(down)), cell}, []int8{1, 0}, nil},
		{"a last resort comes after the others", policy.Request{MaxLinks: 1}, []link{with(wifi, refused), cell}, []int8{1}, []policy.Reason{policy.Enough, 0}},

		{"a link that costs too much may be left out", policy.Request{}, []link{wifi, with(with(cell, metered), goal(schedule.CheapestGoal))}, []int8{0, 1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := policy.For(tt.request, tt.links)
			if !slices.Equal(a.Order, tt.order) {
				t.Errorf("order %v, want %v", a.Order, tt.order)
			}
			for i, v := range a.Verdicts {
				want := policy.NoReason
				if tt.reasons != nil {
					want = tt.reasons[i]
				}
				if v.Reason != want || (v.Use == policy.Yes) != (want == policy.NoReason) {
					t.Errorf("%s: %v %q, want %q", tt.links[i].Name, v.Use, v.Reason, want)
				}
			}
		})
	}
}

// TestGoal: a request's goal takes precedence over that of the links, and a deadline over both.
func TestGoal(t *testing.T) {
	radio := lte(t)
	plain := policy.Terms{Metered: true, Presumed: radio, PerPercent: 10}
	frugal, priced, wifi := plain, plain, policy.Terms{}
	frugal.Goal, frugal.Radio, priced.Goal = schedule.FrugalGoal, radio, schedule.CheapestGoal
	const fast, joules, money, late = "", schedule.FrugalGoal, schedule.CheapestGoal, "deadline"
	for _, tt := range []struct {
		name     string
		request  policy.Request
		terms    policy.Terms
		goal     string
		optional bool
		radio    *energy.Radio
	}{
		{"no goal", policy.Request{}, plain, fast, false, nil},
		{"the link's: frugal", policy.Request{}, frugal, joules, true, radio},
		{"the link's: cheapest", policy.Request{}, priced, money, true, nil},
		{"cheapest is about money", policy.Request{Goal: money}, wifi, fast, false, nil},
		{"fastest on a frugal link", policy.Request{Goal: schedule.Fastest}, frugal, fast, false, radio},
		{"frugal on a link of unknown radio", policy.Request{Goal: joules}, plain, joules, true, radio},
		{"frugal on a cheapest link", policy.Request{Goal: joules}, priced, joules, true, radio},
		{"cheapest on a frugal link", policy.Request{Goal: money}, frugal, money, true, radio},
		{"a deadline", policy.Request{Goal: joules, Deadline: &policy.Deadline{Within: 1}}, plain, late, true, radio},
		{"a deadline does without no free link", policy.Request{Deadline: &policy.Deadline{Within: 1}}, wifi, late, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := policy.For(tt.request, []policy.Link{{Terms: tt.terms, State: up}})
			got := fast
			switch g := a.Goal.(type) {
			case *schedule.Frugal:
				got = joules
			case *schedule.Cheapest:
				if got = money; g.PerPercent != 10 {
					t.Errorf("%d bytes per percent", g.PerPercent)
				}
			case *schedule.Deadline:
				if got = late; g == tt.request.Deadline {
					t.Error("the request's own value is used by several transfers")
				}
			}
			if v := a.Verdicts[0]; got != tt.goal || v.Optional != tt.optional || v.Radio != tt.radio {
				t.Errorf("goal %q, %+v", got, v)
			}
		})
	}
}

// TestDear: whether the first request may ask for more than the client may want from its link.
func TestDear(t *testing.T) {
	wifi, cell := policy.Link{Name: "wifi", State: up}, policy.Link{Name: "lte", State: up, Terms: policy.Terms{Metered: true}}
	absent := wifi
	absent.State = down
	for _, tt := range []struct {
		name    string
		request policy.Request
		links   []policy.Link
		want    bool
	}{
		{"R252 the first link is not metered", policy.Request{}, []policy.Link{cell, wifi}, false},
		{"R253 it is", policy.Request{}, []policy.Link{cell, absent}, true},
		{"R253 frugal", policy.Request{Goal: schedule.FrugalGoal}, []policy.Link{wifi}, true},
		{"R253 background", policy.Request{Background: true}, []policy.Link{wifi}, true},
		{"R253 a deadline", policy.Request{Deadline: &policy.Deadline{}}, []policy.Link{wifi}, true},
	} {
		if got := policy.For(tt.request, tt.links).Dear; got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// random returns a request and links.
func random(r *rand.Rand, radio *energy.Radio) (policy.Request, []policy.Link) {
	half := func() bool { return r.IntN(2) == 0 }
	seldom := func() bool { return r.IntN(5) == 0 }
	goals := append(schedule.Goals(), "")
	q := policy.Request{
		Exposes: half(), Unmetered: seldom(), Shared: seldom(), Goal: goals[r.IntN(len(goals))], Background: seldom(), Began: half(),
		MaxLinks: max(0, r.IntN(6)-2),
	}
	if seldom() {
		q.Deadline = &policy.Deadline{Within: 1}
	}
	if seldom() {
		q.Avoid = "a"
	}
	all := make([]policy.Link, r.IntN(5))
	for i := range all {
		all[i] = policy.Link{
			Name: string(rune('a' + i)), State: []health.State{up, up, suspect, banned, down}[r.IntN(5)], Metric: r.IntN(3),
			Late: seldom(), Refused: seldom(), Out: seldom(), Seen: half(), Carries: half(),
			Terms: policy.Terms{
				Disabled: seldom(), Spent: seldom(), Metered: half(), Untrusted: half(), Goal: goals[r.IntN(len(goals))], PerPercent: 1, Presumed: radio,
			},
		}
		if half() {
			all[i].Radio = radio
		}
	}
	return q, all
}

// reference says which links may carry a request, link by link and rule by rule, without regard to cost.
func reference(q policy.Request, all []policy.Link) (may []bool) {
	last := func(l policy.Link) bool {
		return l.Metered || l.Goal == schedule.FrugalGoal && l.Radio != nil
	}
	// better reports whether a request tries link i before link j.
	better := func(i, j int) bool {
		a, b := all[i], all[j]
		place := func(s health.State) int { return slices.Index([]health.State{up, suspect}, s) & 3 }
		switch {
		case last(a) != last(b):
			return last(b)
		case !last(a) && a.Late != b.Late:
			return b.Late
		case place(a.State) != place(b.State):
			return place(a.State) < place(b.State)
		case a.Metric != b.Metric:
			return a.Metric < b.Metric
		}
		return i < j
	}
	allowed := func(i int) bool {
		l := all[i]
		return !l.Disabled && !l.Spent && l.Name != q.Avoid && !(q.Unmetered && l.Metered)
	}
	some := func(that func(i int) bool) bool {
		for i := range all {
			if that(i) {
				return true
			}
		}
		return false
	}
	trusted := func(i int) bool {
		l := all[i]
		switch {
		case !q.Exposes || !l.Untrusted || q.Began && l.Seen:
			return true
		case q.Began || l.State == down:
			return false
		case some(func(j int) bool {
			return !all[j].Disabled && !all[j].Spent && !all[j].Untrusted && (all[j].State == up || all[j].State == suspect)
		}):
			return false
		}
		return !some(func(j int) bool { return allowed(j) && all[j].Untrusted && all[j].State != down && better(j, i) })
	}
	admitted := func(i int) bool { return allowed(i) && trusted(i) }
	wanted := func(i int) bool {
		return admitted(i) && !(q.Shared && last(all[i]) && some(func(j int) bool { return admitted(j) && !last(all[j]) }))
	}
	resort := func(i int) bool {
		return all[i].Refused && some(func(j int) bool { return wanted(j) && !all[j].Refused && all[j].State == up })
	}
	serves := func(i int) bool { return wanted(i) && (all[i].State == up || all[i].State == suspect) && !all[i].Out }
	before := func(i, j int) bool {
		switch {
		case resort(i) != resort(j):
			return resort(j)
		case all[i].Carries != all[j].Carries:
			return all[i].Carries
		}
		return better(i, j)
	}
	for i := range all {
		ahead, serving := 0, 0
		for j := range all {
			if serves(j) {
				serving++
				if before(j, i) {
					ahead++
				}
			}
		}
		switch {
		case !wanted(i):
			may = append(may, false)
		case q.MaxLinks == 0:
			may = append(may, true)
		case serves(i):
			may = append(may, ahead < q.MaxLinks)
		default:
			may = append(may, serving < q.MaxLinks)
		}
	}
	return may
}

// TestReference compares For with another statement of the rules, and checks what no request may do, whatever its options.
func TestReference(t *testing.T) {
	cases := 1_000_000
	if testing.Short() {
		cases = 20_000
	}
	radio := lte(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range cases {
		q, all := random(r, radio)
		a := policy.For(q, all)
		want := reference(q, all)
		var order []int8
		carries, untrusted, trusted := 0, 0, false
		for i, v := range a.Verdicts {
			l := all[i]
			trusted = trusted || !l.Untrusted && !l.Disabled && !l.Spent && (l.State == up || l.State == suspect)
			if v.May() != want[i] {
				t.Fatalf("%+v\n%+v\nlink %s: %v, want %v", q, all, l.Name, v, want[i])
			}
			if !v.May() {
				continue
			}
			order = append(order, int8(i))
			if (l.State == up || l.State == suspect) && !l.Out {
				carries++
			}
			if l.Untrusted && !l.Seen {
				untrusted++
			}
			if l.Disabled || l.Spent || q.Unmetered && l.Metered || q.Avoid == l.Name || !q.Permits(l.Terms) {
				t.Fatalf("%+v may use %+v", q, l)
			}
		}
		switch {
		case q.MaxLinks > 0 && carries > q.MaxLinks:
			t.Fatalf("%+v: %d links at a time of %+v", q, carries, all)
		case q.Exposes && (untrusted > 1 || untrusted > 0 && (q.Began || trusted)):
			t.Fatalf("%+v: %d untrusted links may see it of %+v", q, untrusted, all)
		}
		slices.Sort(order)
		given := slices.Clone(a.Order)
		if slices.Sort(given); !slices.Equal(given, order) {
			t.Fatalf("%+v\n%+v\norder %v, may %v", q, all, given, order)
		}
	}
}
