package literature

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// registry lists the schedulers of this package.
var registry = []struct {
	name string
	make func() schedule.Scheduler
}{
	{"alg1", func() schedule.Scheduler { return &Alg1{} }},
	{"alg2", func() schedule.Scheduler { return &Alg2{} }},
	{"alg3-literal", func() schedule.Scheduler { return &Alg3{} }},
	{"alg3-padded", func() schedule.Scheduler { return &Alg3{Padding: 0.3} }},
	{"dems", func() schedule.Scheduler { return &DEMS{} }},
	{"dynamic", func() schedule.Scheduler { return &Subsegments{Dynamic: true} }},
	{"dynamic-literal", func() schedule.Scheduler { return &Subsegments{Dynamic: true, Literal: true} }},
	{"fixed", func() schedule.Scheduler { return &Fixed{} }},
	{"fixed-128k", func() schedule.Scheduler { return &Fixed{Size: 128e3} }},
	{"fixed-512k", func() schedule.Scheduler { return &Fixed{Size: 512e3} }},
	{"mphttp", func() schedule.Scheduler { return &MPHTTP{} }},
	{"msplayer", func() schedule.Scheduler { return &MSPlayer{} }},
	{"naive", func() schedule.Scheduler { return &Naive{} }},
	{"probe", func() schedule.Scheduler { return &Probe{} }},
	{"ratio", func() schedule.Scheduler { return &MSPlayer{Ratio: true} }},
	{"static", func() schedule.Scheduler { return &Subsegments{} }},
}

// New returns a new scheduler for one transfer, of this package or of the product.
func New(name string) (schedule.Scheduler, error) {
	scheduler, err := Maker(name)
	if err != nil {
		return nil, err
	}
	return scheduler(), nil
}

// Maker is schedule.Maker for the schedulers that New knows.
func Maker(name string) (func() schedule.Scheduler, error) {
	for _, e := range registry {
		if e.name == name {
			return e.make, nil
		}
	}
	scheduler, err := schedule.Maker(name)
	if err != nil {
		return nil, fmt.Errorf("unknown scheduler %q: use one of %s", name, strings.Join(Names(), ", "))
	}
	return scheduler, nil
}

// Names returns the names that New knows, sorted.
func Names() []string {
	n := schedule.Names()
	for _, e := range registry {
		n = append(n, e.name)
	}
	slices.Sort(n)
	return n
}
