package lanes

import (
	"math"
	"testing"
	"time"
)

// TestCapHolds: the cap keeps a lane from being limited by its congestion window, so the kernel calls all its rates limited by
// the application. The lane remembers its rate anyway, follows a link that has changed, and starts again after a pause.
func TestCapHolds(t *testing.T) {
	const rtt = 40 * time.Millisecond
	now := time.Unix(0, 0)
	l := &lane{progress: now, since: now}
	sent := uint64(0)
	// over a link of this rate the lane has as much in flight as it may
	run := func(rate float64, d time.Duration) (flying, most float64) {
		for began, end := now, now.Add(d); now.Before(end); now = now.Add(rtt / 4) {
			flying = float64(l.path.InFlight) - l.excess()
			if l.fastest() == 0 {
				flying = 1 << 20
			}
			bdp := rate * rtt.Seconds()
			if now.Sub(began) > d/2 {
				most = max(most, flying)
			}
			sent += uint64(rate * rtt.Seconds() / 4)
			l.observe(now, Path{
				RTT: rtt + max(0, seconds((flying-bdp)/rate)), MinRTT: rtt, CWnd: 1 << 20, InFlight: int(flying),
				DeliveryRate: min(rate, flying/rtt.Seconds()), AppLimited: flying < 1<<20, Progress: sent,
			})
		}
		return flying, most
	}
	if flying, most := run(5e6, 10*time.Second); most > 2*5e6*rtt.Seconds() || flying < 5e6*rtt.Seconds() {
		t.Errorf("over a steady link %.0f to %.0f bytes are in flight", flying, most)
	}
	if _, most := run(1e6, 10*time.Second); most > 2*1e6*rtt.Seconds() {
		t.Errorf("after the link has become slower, %.0f bytes are in flight", most)
	}
	if flying, _ := run(5e6, 10*time.Second); flying < 5e6*rtt.Seconds() {
		t.Errorf("after the link has become faster, %.0f bytes are in flight", flying)
	}
	now = now.Add(rateAge)
	l.observe(now, Path{RTT: rtt, MinRTT: rtt, CWnd: 14480, AppLimited: true, Progress: sent})
	if l.rate() != 14480/rtt.Seconds() || l.rounds != 0 {
		t.Errorf("after a pause it has a rate of %.0f and %d rounds", l.rate(), l.rounds)
	}
}

// TestSlack: small messages wait for at most 3 ms behind the slack of a lane, unless its link carries less than 12 KiB in that time.
// Over a fast network with short round trips there is room for many frames.
func TestSlack(t *testing.T) {
	for _, c := range []struct {
		rate   float64 // bytes per second
		rtt    time.Duration
		excess float64 // room beyond the multiple of the BDP, in bytes
	}{
		{0.1e6, 40 * time.Millisecond, 12 << 10},
		{2e6, 40 * time.Millisecond, 20_000},
		{10e6, 40 * time.Millisecond, 30 << 10},
		{125e6, 300 * time.Microsecond, 250_000},
		{500e6, 50 * time.Microsecond, 1_000_000},
	} {
		l := &lane{rates: [2]float64{c.rate}, rounds: settledRounds, path: Path{RTT: c.rtt, MinRTT: c.rtt}}
		if slack := l.limit() - steadyCap*c.rate*c.rtt.Seconds(); math.Abs(slack-c.excess) > 1 {
			t.Errorf("%.0f bytes per second, %s: %.0f bytes of slack, want %.0f", c.rate, c.rtt, slack, c.excess)
		}
	}
}
