package transport

import (
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
)

func TestTerms(t *testing.T) {
	cfg := config.Default()
	known := radios{}
	terms := func(name, kind string) policy.Terms {
		t.Helper()
		l := link.Link{Name: name, Kind: kind, Terms: policy.Terms{Metered: name == "wwan2"}}
		if err := known.terms(&cfg, &l); err != nil {
			t.Error(err)
		}
		return l.Terms
	}
	if l := terms("wwan0", link.KindCellular); l.Goal != schedule.Fastest || l.Radio != nil || l.Last() || l.Presumed == nil {
		t.Errorf("with the goal fastest: %+v", l)
	}
	cfg.MeteredPerPercent = 5
	if l := terms("wwan2", ""); l.PerPercent != 5 || !l.Metered {
		t.Errorf("%+v: a request may ask for the goal cheapest", l)
	}
	cfg.Goal = schedule.FrugalGoal
	cfg.Link = map[string]config.Link{"wwan1": {Goal: schedule.Fastest, Radio: "galaxy-s20-ultra/5g-mmwave"}}
	lte, wifi, eth, other := terms("wwan0", link.KindCellular), terms("wlan0", link.KindWiFi), terms("eth0", link.KindEthernet), terms("wwan1", link.KindCellular)
	if !lte.Last() || !lte.OnDemand() {
		t.Errorf("LTE, which is costly to wake, joins last: %+v", lte)
	}
	if wifi.Last() || !wifi.OnDemand() || wifi.Radio == nil || eth.Radio != nil || eth.Last() {
		t.Errorf("Wi-Fi %+v, Ethernet %+v", wifi, eth)
	}
	if other.Last() || other.OnDemand() || other.Radio == nil {
		t.Errorf("a link with a goal of its own: %+v", other)
	}
	if again := terms("wwan0", link.KindCellular); again != lte {
		t.Error("the same link is another one when it is seen again")
	}
}
