package discover

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestDecideNamesTheNetwork: a candidate is identified by its routers.
func TestDecideNamesTheNetwork(t *testing.T) {
	name := func(gateway string) string {
		i := good()
		i.Routes = []Route{{Metric: 200, Gateway: netip.MustParseAddr(gateway)}}
		c := decide(i, Options{})
		if !c.Use || c.Link.Network == "" {
			t.Errorf("%+v", c)
		}
		return c.Link.Network
	}
	one, again, other := name("192.0.2.1"), name("192.0.2.1"), name("192.0.2.254")
	if one != again || one == other {
		t.Errorf("%q, %q, %q", one, again, other)
	}
	l := link.Link{Name: "eth0", Network: one}
	if o := (link.Link{Name: "eth0", Network: other}); l.Equal(o) {
		t.Error("a link in another network is the same")
	}
}

// TestIdentify: a network has the same name whenever the link is in it, and a different one from other networks of the link.
func TestIdentify(t *testing.T) {
	type at struct {
		link          link.Link
		gateways, dns []string
	}
	name := func(a at) string {
		var gateways []netip.Addr
		var dns []netip.AddrPort
		for _, g := range a.gateways {
			gateways = append(gateways, netip.MustParseAddr(g))
		}
		for _, s := range a.dns {
			dns = append(dns, netip.AddrPortFrom(netip.MustParseAddr(s), 53))
		}
		return Identify(a.link, gateways, dns)
	}
	wlan := func(nets ...string) link.Link {
		l := link.Link{Name: "wlan0", Kind: link.KindWiFi}
		for _, n := range nets {
			l.Prefixes = append(l.Prefixes, netip.MustParsePrefix(n))
		}
		return l
	}
	other := wlan("192.168.1.0/24")
	other.Name = "wlan1"
	wired := wlan("192.168.1.0/24")
	wired.Kind = link.KindEthernet
	modem := func(name string, handle uint64, nets ...string) link.Link {
		l := wlan(nets...)
		l.Name, l.Kind, l.Handle = name, link.KindCellular, handle
		return l
	}
	home := at{wlan("192.168.1.0/24"), []string{"192.168.1.1"}, nil}
	phone := at{modem("rmnet_data1", 101, "10.20.30.40/30"), nil, []string{"10.0.0.1", "10.0.0.2"}}
	for _, c := range []struct {
		name      string
		one, two  at
		different bool
	}{
		{"the same", home, home, false},
		{"another IPv6 network of the provider", at{wlan("2001:db8:1::/64", "192.168.1.0/24"), []string{"fe80::1", "192.168.1.1"}, nil}, home, false},
		{"another router", home, at{home.link, []string{"192.168.1.254"}, nil}, true},
		{"another IPv4 network", home, at{wlan("192.168.0.0/24"), home.gateways, nil}, true},
		{"another link", home, at{other, home.gateways, nil}, true},
		{"another kind of link", home, at{wired, home.gateways, nil}, true},
		{"other servers", home, at{home.link, home.gateways, []string{"192.168.1.1"}}, true},
		{
			"IPv6 only: the router counts",
			at{wlan("2001:db8:1::/64"), []string{"fe80::1"}, nil},
			at{wlan("2001:db8:2::/64"), []string{"fe80::1"}, nil},
			false,
		},
		{"IPv6 only: another router", at{wlan("2001:db8::/64"), []string{"fe80::1"}, nil}, at{wlan("2001:db8::/64"), []string{"fe80::2"}, nil}, true},
		{"a phone dials in again", phone, at{modem("rmnet_data2", 102, "10.99.0.8/29"), nil, []string{"10.0.0.2", "10.0.0.1"}}, false},
		{"another provider", phone, at{phone.link, nil, []string{"8.8.8.8"}}, true},
		{"a modem dials in again", at{modem("wwan0", 0, "10.20.30.40/30"), []string{"10.20.30.41"}, nil}, at{modem("wwan0", 0, "10.9.9.9/30"), nil, nil}, false},
		{"a phone's modems without servers", at{phone.link, nil, nil}, at{modem("rmnet_data2", 102), nil, nil}, true},
		{"another modem", at{modem("wwan0", 0), nil, nil}, at{modem("wwan1", 0), nil, nil}, true},
	} {
		if got := name(c.one) != name(c.two); got != c.different {
			t.Errorf("%s: %q and %q", c.name, name(c.one), name(c.two))
		}
	}
}

// TestEqual: a change of any field makes another link.
func TestEqual(t *testing.T) {
	l := link.Link{Name: "a"}
	if !l.Equal(l) {
		t.Error("a link differs from itself")
	}
	for f := range reflect.TypeFor[link.Link]().Fields() {
		o := l
		v := reflect.ValueOf(&o).Elem().FieldByIndex(f.Index)
		switch v.Kind() {
		case reflect.String:
			v.SetString("b")
		case reflect.Int:
			v.SetInt(1)
		case reflect.Uint64:
			v.SetUint(1)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Interface:
			v.Set(reflect.ValueOf(link.DialFunc(nil).Path(l)))
		default:
			switch v.Type() {
			case reflect.TypeFor[netip.Prefix]():
				v.Set(reflect.ValueOf(netip.MustParsePrefix("64:ff9b::/96")))
			case reflect.TypeFor[policy.Terms]():
				v.FieldByName("Spent").SetBool(true)
			default:
				t.Fatalf("no value for %s", f.Name)
			}
		}
		if l.Equal(o) {
			t.Errorf("%s makes no difference", f.Name)
		}
	}
}
