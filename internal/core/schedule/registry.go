package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// registry lists the schedulers of the product. The laboratory has those of the literature.
var registry = []struct {
	name string
	make func() Scheduler
}{
	{"alg3", func() Scheduler { return &Alg3{} }},
	{"confluence", func() Scheduler { return &Confluence{} }},
	{"single", func() Scheduler { return &Single{} }},
}

// Default is the scheduler of a fresh installation.
const Default = "confluence"

// New returns a new scheduler for one transfer.
func New(name string) (Scheduler, error) {
	scheduler, err := Maker(name)
	if err != nil {
		return nil, err
	}
	return scheduler(), nil
}

// Maker returns the function that makes a new scheduler for each transfer.
func Maker(name string) (func() Scheduler, error) {
	for _, e := range registry {
		if e.name == name {
			return e.make, nil
		}
	}
	return nil, fmt.Errorf("unknown scheduler %q: use one of %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of the schedulers of this package, sorted.
func Names() []string {
	var n []string
	for _, e := range registry {
		n = append(n, e.name)
	}
	slices.Sort(n)
	return n
}
