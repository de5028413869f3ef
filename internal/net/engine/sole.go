package engine

import (
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// chooseSole chooses the link that serves the transfer alone while memory is scarce, and begins with it if that is so
// already. It is one of the links that cost nothing, if one of them is up. A transfer with a goal, or in the
// background, chooses its links itself.
func (r *run) chooseSole(cfg *transfer.Config) {
	if cfg.Goal != nil || cfg.Background {
		return
	}
	var free, metered []int8
	for _, i := range cfg.Order {
		switch l := &cfg.Links[i]; {
		case l.State != health.Up || l.Resort || l.Spare:
		case l.Metered:
			metered = append(metered, i)
		default:
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		free = metered
	}
	if len(free) == 0 {
		return
	}
	sole := r.e.fleet.share(r, free, func(i int8) float64 { return max(transfer.LeastRate, cfg.Links[i].Learned.Rate) })
	cfg.Links[sole].Sole = true
	if r.e.budget.Scarce(r.req.Target.cost()) {
		cfg.Warm, cfg.Scarce = false, true
		cfg.Order = append([]int8{sole}, slices.DeleteFunc(slices.Clone(cfg.Order),
			func(i int8) bool { return i == sole })...)
	}
}

// share gives a transfer the link that has the most to give to one more: the goodput of the last seconds, or known if
// that is more, divided by the transfers to which it was given.
func (f *fleet) share(r *run, among []int8, known func(i int8) float64) (best int8) {
	f.mu.Lock()
	defer f.mu.Unlock()
	given := map[int8]int{}
	for _, o := range f.runs {
		if o != r {
			given[o.sole]++
		}
	}
	at, most := f.clock(time.Now()), -1.0
	for _, i := range among {
		if each := max(f.all[i].meter.rate(at), known(i)) / float64(given[i]+1); each > most {
			best, most = i, each
		}
	}
	r.sole = best
	return best
}
