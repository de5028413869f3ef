package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/lab/literature"
)

// Oracles returns the names of the schedulers that only a simulator can run, since they know the future (Nika 2015
// sections 4.1 and
// 5.2; Skjolden 2019 section 8.2.2). alg2-known and alg3-known are the formulas as published with the links' mean rates
// as constants. optimal knows how much each link carries until all end together; noisy-2 and noisy-50 know the same
// with a normally distributed error of 2 and 50 %. best knows the better link, and switching the faster one at each
// moment.
func Oracles() []string {
	return []string{"alg2-known", "alg3-known", "best", "noisy-2", "noisy-50", "optimal", "switching", "switching-free"}
}

// knows reports whether a scheduler is an oracle. Oracles get a window as large as the object, since they show the
// value of knowledge, not the cost of memory.
func knows(scheduler string) bool { return slices.Contains(Oracles(), scheduler) }

func (s Spec) scheduler() (schedule.Scheduler, error) {
	if s.with != nil {
		return s.with, nil
	}
	switch s.Scheduler {
	case "alg2-known":
		return &literature.Alg2{Bandwidth: s.rates()}, nil
	case "alg3-known":
		return &literature.Alg3{Bandwidth: s.rates()}, nil
	case "best":
		return &schedule.Single{}, nil
	case "noisy-2":
		return s.partition(0.02)
	case "noisy-50":
		return s.partition(0.5)
	case "optimal":
		return s.partition(0)
	case "switching":
		return s.switching(switchCost), nil
	case "switching-free":
		return s.switching(nil), nil
	}
	return literature.New(s.Scheduler)
}

// Limit returns the bundling limit of a scenario and the bytes that each link carries until then. Each link alone
// fetches the whole object, and the limit is the time at which together they have delivered as many bytes as the object
// has (the replay of Nika 2015 section 2.2).
func Limit(s Spec) (time.Duration, []int64, error) {
	r, err := Bundle(s)
	return r.Took, r.Bytes, err
}

// Bundle returns the result of the run that Limit describes: when the links have delivered the object, and the bytes
// that each delivered by then. Its joules cover only content, not acknowledgments, requests and handshakes.
func Bundle(s Spec) (Result, error) {
	type sample struct {
		at   time.Duration
		link int
		n    int64
	}
	var all []sample
	for i := range s.Links {
		alone := s
		alone.Scheduler, alone.Window, alone.Client = "single", s.Size+1<<20, 0
		alone.Faults, alone.Log, alone.First = Faults{}, nil, 0
		alone.Links = slices.Clone(s.Links[i : i+1])
		alone.read = func(at time.Duration, _ int8, n int64) { all = append(all, sample{at, i, n}) }
		if _, err := Run(alone); err != nil && s.Links[i].Rate > 0 && len(s.Links[i].Events) == 0 {
			return Result{}, fmt.Errorf("link %d alone: %w", i, err)
		}
	}
	slices.SortStableFunc(all, func(a, b sample) int { return int(a.at - b.at) })
	r := Result{Bytes: make([]int64, len(s.Links)), Received: make(Received, len(s.Links))}
	radios := make([]energy.Meter, len(s.Links))
	for i, l := range s.Links {
		if l.Radio != nil {
			radios[i].Radio = *l.Radio
		}
	}
	sum := int64(0)
	for _, x := range all {
		n := min(x.n, s.Size-sum)
		r.Bytes[x.link] += n
		r.Received.add(x.at, int8(x.link), n)
		radios[x.link].Add(time.Unix(0, 0).Add(x.at), 0, n)
		if sum += n; sum == s.Size {
			r.Took = x.at
			for i := range radios {
				r.Joules = append(r.Joules, radios[i].Settled())
			}
			return r, nil
		}
	}
	return Result{}, fmt.Errorf("the links bring %d of %d bytes", sum, s.Size)
}

// partition splits the object by how much each link carries until the limit, times 1 + noise g, where g is normally
// distributed.
func (s Spec) partition(noise float64) (schedule.Scheduler, error) {
	carried := s.carried
	if carried == nil {
		var err error
		if _, carried, err = Limit(s); err != nil {
			return nil, err
		}
	}
	rng := rand.New(rand.NewPCG(s.Seed, 11))
	p := &literature.Partition{}
	for _, n := range carried {
		p.Weights = append(p.Weights, max(0.01, 1+noise*rng.NormFloat64())*float64(n))
	}
	return p, nil
}

func (s Spec) rates() (all []float64) {
	for i := range s.Links {
		all = append(all, s.Links[i].Mean())
	}
	return all
}

// switchCost returns the cost of switching radios: link 0 is Wi-Fi (Nika 2015 section 4.1).
func switchCost(_, to int8) time.Duration {
	if to == 0 {
		return 1212 * time.Millisecond
	}
	return 196 * time.Millisecond
}

func (s Spec) switching(cost func(from, to int8) time.Duration) schedule.Scheduler {
	links := make([]*simLink, len(s.Links))
	for i, l := range s.Links {
		links[i] = newLink(l)
	}
	best := func(now time.Time) int8 {
		b, most := int8(0), -1.
		for i, l := range links {
			if r, _ := l.rate(now.Sub(epoch)); r > most {
				b, most = int8(i), r
			}
		}
		return b
	}
	return &literature.Switching{Best: best, Cost: cost}
}

// order returns the links in order of preference for the first request.
func (s Spec) order() (all []int8) {
	for i := range s.Links {
		all = append(all, int8(i))
	}
	if s.Scheduler != "best" {
		return all
	}
	took := make([]time.Duration, len(s.Links))
	for i := range s.Links {
		alone := s
		alone.Scheduler, alone.Log, alone.read = "single", nil, nil
		alone.Links = s.Links[i : i+1]
		took[i] = maxTime
		if r, err := Run(alone); err == nil {
			took[i] = r.Took
		}
	}
	slices.SortStableFunc(all, func(a, b int8) int { return int(took[a] - took[b]) })
	return all
}
