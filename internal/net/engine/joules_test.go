package engine

import (
	"math"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
)

func lteRadio(t *testing.T) *energy.Radio {
	t.Helper()
	r, err := energy.FindRadio("galaxy-s3/lte")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A request's joules include its whole tail: LTE's promotion and tail at -100 dBm, 0.36 + 0.2 * 1.5355 + 1.34834 = 2.015 J, and 1 s
// of bytes at 1.5355 W.
func TestUsageJoules(t *testing.T) {
	var u Usage
	r, now := lteRadio(t), time.Now()
	u.Spare("wlan0", "") // nothing to record
	for i := range 11 {
		u.Add("wwan0", 1000, 0)
		u.Spend("wwan0", r, now.Add(time.Duration(i)*100*time.Millisecond), 1000)
	}
	u.Add("eth0", 5, 0)
	u.Spend("eth0", nil, now, 5)
	u.Spare("wwan1", "costs_more")
	got := u.Links()
	if len(got) != 3 || math.Abs(got[0].Joules-2.015-1.5355) > 0.001 || got[0].Bytes != 11_000 || got[1].Joules != 0 || got[2] != (LinkUse{Link: "wwan1", Spared: "costs_more"}) {
		t.Errorf("%+v", got)
	}
	u.Spare("wwan1", "")
	if got := u.Links()[2]; got.Spared != "" {
		t.Errorf("it is used now: %+v", got)
	}
	var none *Usage
	none.Spend("wwan0", r, now, 1)
	none.Spare("wwan0", "x")
}

// A link's joules grow with its tail, and are kept when the link gets another radio.
func TestRadioMeter(t *testing.T) {
	var m radioMeter
	now := time.Now()
	m.add(now, 1)
	if j, state := m.joules(now); j != 0 || state != "" || !m.lastByte().Equal(now) {
		t.Errorf("without a radio: %g J, %q", j, state)
	}
	m.set(lteRadio(t))
	m.add(now, 1000)
	j, state := m.joules(now.Add(100 * time.Millisecond))
	if math.Abs(j-0.36-0.15355) > 1e-4 || state != "continuous reception" {
		t.Errorf("%g J, %q", j, state)
	}
	m.set(nil)
	if j, _ := m.joules(now.Add(time.Minute)); j != 0 {
		t.Errorf("%g J of no radio", j)
	}
}
