package mptcp

import (
	"net/netip"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	wifi := Interface{"wlan0", []netip.Addr{netip.MustParseAddr("192.168.1.7")}}
	lte := Interface{"wwan0", []netip.Addr{netip.MustParseAddr("10.9.8.7"), netip.MustParseAddr("2001:db8::7")}}
	over := Endpoint{ID: 1, Addr: lte.Addrs[0], Interface: "wwan0", Subflow: true}
	unnamed := Endpoint{ID: 2, Addr: lte.Addrs[1], Subflow: true}
	signal := Endpoint{ID: 3, Addr: lte.Addrs[0], Interface: "wwan0"}
	for _, c := range []struct {
		name      string
		endpoints []Endpoint
		allowed   []Interface
		refused   string
		missing   string
	}{
		{"no endpoints", nil, []Interface{wifi, lte}, "", "wlan0 wwan0"},
		{"by interface", []Endpoint{over}, []Interface{wifi, lte}, "", "wlan0"},
		{"by address", []Endpoint{unnamed}, []Interface{wifi, lte}, "", "wlan0"},
		{"a link that must not carry it", []Endpoint{over}, []Interface{wifi}, "10.9.8.7 of wwan0", "wlan0"},
		{"its address", []Endpoint{unnamed}, []Interface{wifi}, "delete id 2", "wlan0"},
		{"announced only", []Endpoint{signal}, []Interface{wifi}, "", "wlan0"},
		{"nothing may", []Endpoint{over}, nil, "10.9.8.7 of wwan0", ""},
	} {
		s := Settings{Known: true, Enabled: true, Endpoints: c.endpoints}
		err := s.Check(c.allowed)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v", c.name, err)
		}
		var missing []string
		for _, l := range s.Missing(c.allowed) {
			missing = append(missing, l.Name)
		}
		if got := strings.Join(missing, " "); got != c.missing {
			t.Errorf("%s: missing %q", c.name, got)
		}
	}
}
