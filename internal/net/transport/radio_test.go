package transport

import (
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
)

func TestEquip(t *testing.T) {
	cfg := config.Default()
	known := radios{}
	equip := func(name, kind string) link.Link {
		t.Helper()
		l := link.Link{Name: name, Kind: kind}
		if err := known.equip(&cfg, &l); err != nil {
			t.Error(err)
		}
		return l
	}
	if l := equip("wwan0", link.KindCellular); l.Frugal || l.Radio != nil || l.Last() || l.Presumed == nil {
		t.Errorf("with the goal fastest: %+v", l)
	}
	cfg.MeteredPerPercent = 5
	wwan := link.Link{Name: "wwan0", Metered: true}
	if err := known.equip(&cfg, &wwan); err != nil || wwan.Priced() || wwan.PerPercent != 5 {
		t.Errorf("%+v, %v: a request may ask for the goal cheapest", wwan, err)
	}
	cfg.Goal = config.GoalCheapest
	if err := known.equip(&cfg, &wwan); err != nil || !wwan.Priced() || wwan.PerPercent != 5 {
		t.Errorf("with the goal cheapest: %+v, %v", wwan, err)
	}
	cfg.Goal = config.GoalFrugal
	cfg.Link = map[string]config.Link{"wwan1": {Goal: config.GoalFastest, Radio: "galaxy-s20-ultra/5g-mmwave"}}
	lte, wifi, eth, other := equip("wwan0", link.KindCellular), equip("wlan0", link.KindWiFi), equip("eth0", link.KindEthernet), equip("wwan1", link.KindCellular)
	if !lte.Last() || !lte.Frugal {
		t.Errorf("LTE, which is costly to wake, joins last: %+v", lte)
	}
	if wifi.Last() || wifi.Radio == nil || eth.Radio != nil || eth.Last() {
		t.Errorf("Wi-Fi %+v, Ethernet %+v", wifi, eth)
	}
	if other.Frugal || other.Last() || !other.Costly() {
		t.Errorf("a link with a goal of its own: %+v", other)
	}
	if again := equip("wwan0", link.KindCellular); !again.Equal(lte) {
		t.Error("the same link is another one when it is seen again")
	}
}
