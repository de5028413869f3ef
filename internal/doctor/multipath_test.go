package doctor

import (
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/mptcp"
)

func TestMultipath(t *testing.T) {
	on := func(name, address string) mptcp.Endpoint {
		return mptcp.Endpoint{ID: 4, Addr: addr(address), Interface: name, Subflow: true}
	}
	both := []mptcp.Endpoint{on("wlan0", "192.168.1.7"), on("wwan0", "10.9.8.7")}
	for _, c := range []struct {
		name    string
		s       mptcp.Settings
		change  func(*Facts)
		verdict Verdict
		fix     string
	}{
		{"well", mptcp.Settings{Known: true, Enabled: true, Limit: 2, Endpoints: both}, nil, OK, ""},
		{"no MPTCP", mptcp.Settings{}, nil, Warn, "tributary relay"},
		{"disabled", mptcp.Settings{Known: true}, nil, Warn, "sysctl net.mptcp.enabled=1"},
		{"no endpoint", mptcp.Settings{Known: true, Enabled: true, Limit: 2, Endpoints: both[:1]}, nil, Warn, "ip mptcp endpoint add 10.9.8.7 dev wwan0 subflow && ip mptcp endpoint add 2001:db8::2 dev wwan0 subflow"},
		{"limit", mptcp.Settings{Known: true, Enabled: true, Endpoints: both}, nil, Warn, "ip mptcp limits set subflow 1"},
		{"metered", mptcp.Settings{Known: true, Enabled: true, Limit: 2, Endpoints: both}, func(f *Facts) { f.Links[1].Link.Metered = true }, Fail, ""},
	} {
		f := healthy()
		f.Multipath = &c.s
		if c.change != nil {
			c.change(f)
		}
		all := multipath(f)
		if len(all) != 1 || all[0].Verdict != c.verdict || all[0].Fix != c.fix && (c.fix == "" || !strings.Contains(all[0].Fix, c.fix)) {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
	if all := multipath(healthy()); all != nil {
		t.Errorf("without a proxy: %+v", all)
	}
}
