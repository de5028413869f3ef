package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// registry names every scheduler.
var registry = []struct {
	name string
	make func() Scheduler
}{
	{"alg1", func() Scheduler { return &Alg1{} }},
	{"alg2", func() Scheduler { return &Alg2{} }},
	{"alg3", func() Scheduler { return &Alg3{} }},
	{"alg3-literal", func() Scheduler { return &Alg3{Literal: true} }},
	{"alg3-padded", func() Scheduler { return &Alg3{Literal: true, Padding: 0.3} }},
	{"confluence", func() Scheduler { return &Confluence{} }},
	{"dems", func() Scheduler { return &DEMS{} }},
	{"dynamic", func() Scheduler { return &Subsegments{Dynamic: true} }},
	{"dynamic-literal", func() Scheduler { return &Subsegments{Dynamic: true, Literal: true} }},
	{"fixed", func() Scheduler { return &Fixed{} }},
	{"fixed-128k", func() Scheduler { return &Fixed{Size: 128e3} }},
	{"fixed-512k", func() Scheduler { return &Fixed{Size: 512e3} }},
	{"mphttp", func() Scheduler { return &MPHTTP{} }},
	{"msplayer", func() Scheduler { return &MSPlayer{} }},
	{"naive", func() Scheduler { return &Naive{} }},
	{"probe", func() Scheduler { return &Probe{} }},
	{"ratio", func() Scheduler { return &MSPlayer{Ratio: true} }},
	{"single", func() Scheduler { return &Single{} }},
	{"static", func() Scheduler { return &Subsegments{} }},
}

// Default is the scheduler of a fresh installation.
const Default = "confluence"

// New returns a new scheduler for one transfer.
func New(name string) (Scheduler, error) {
	for _, e := range registry {
		if e.name == name {
			return e.make(), nil
		}
	}
	return nil, fmt.Errorf("unknown scheduler %q: use one of %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all schedulers, sorted.
func Names() []string {
	var n []string
	for _, e := range registry {
		n = append(n, e.name)
	}
	slices.Sort(n)
	return n
}
