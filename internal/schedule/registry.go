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
	{"alg3", func() Scheduler { return &Alg3{} }},
	{"alg3-literal", func() Scheduler { return &Alg3{Literal: true} }},
	{"naive", func() Scheduler { return &Naive{} }},
	{"single", func() Scheduler { return &Single{} }},
}

// Default is the scheduler of a fresh installation.
const Default = "alg3"

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
