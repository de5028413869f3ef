package get

import (
	"context"

	"golang.org/x/time/rate"
)

// Limit bounds the rate of all downloads that share it: what is written waits, so the links receive no faster.
type Limit struct{ bucket *rate.Limiter }

// limitBurst is how many bytes may be written at once.
const limitBurst = 64 << 10

// NewLimit returns a limit in bytes per second.
func NewLimit(perSecond float64) *Limit {
	return &Limit{rate.NewLimiter(rate.Limit(perSecond), limitBurst)}
}

// wait takes the time of n bytes. It ends early if ctx does.
func (l *Limit) wait(ctx context.Context, n int) {
	for l != nil && n > 0 && ctx.Err() == nil {
		k := min(n, limitBurst)
		_ = l.bucket.WaitN(ctx, k)
		n -= k
	}
}
