package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/doctor"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// look runs the command line on a machine with a Wi-Fi link, a disconnected cable and a VPN.
func look(t *testing.T, args ...string) (code int, stdout, stderr string, cfg config.Config) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		version: "v9", rawStdout: &out, rawStderr: &errs, serve: noServe, proxy: noProxy, getenv: func(string) string { return "" },
		candidates: func(c config.Config) ([]discover.Candidate, *link.Resolver, error) {
			cfg = c
			if c.Allows("broken") && len(c.Links) > 0 {
				return nil, nil, errors.New("no netlink here")
			}
			gateway := netip.MustParseAddr("192.168.1.1")
			return []discover.Candidate{
				{
					Use: true, State: "up", Reason: "up, with an address and a default route", Gateways: []netip.Addr{gateway},
					Link: link.Link{
						Name: "wlan0", Kind: link.KindWiFi, Metric: 600, Addrs: []netip.Addr{netip.MustParseAddr("192.168.1.7")},
						DNS: []netip.AddrPort{netip.AddrPortFrom(gateway, 53)},
					},
				},
				{State: "off", Reason: "switched off", Link: link.Link{Name: "eth0", Kind: link.KindEthernet, Terms: policy.Terms{Metered: true}}},
				{Reason: "not one of the links that were named", Link: link.Link{Name: "via0", Kind: link.KindSOCKS5, Via: "socks5://127.0.0.1:1080", Metric: link.Unranked}},
			}, &link.Resolver{Binder: link.Device{}}, nil
		},
	}
	code = a.run(t.Context(), args)
	return code, out.String(), errs.String(), cfg
}

func TestLinks(t *testing.T) {
	code, out, errs, _ := look(t, "links")
	if code != 0 || errs != "configuration: none, the defaults apply\n" {
		t.Fatalf("code %d, %s", code, errs)
	}
	for _, want := range []string{
		"wlan0  yes   wifi               up     192.168.1.7  192.168.1.1  192.168.1.1\n",
		"eth0   no    ethernet, metered  off    -            -            -\n",
		"via0   no    socks5             -      -            -            upstream\n",
		"eth0: switched off\n", "1 link is used", "DNS from configuration", "tributary doctor",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}

	code, out, _, cfg := look(t, "links", "--json", "--link", "wlan0")
	var rows []linkRow
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 3 {
		t.Fatalf("code %d, %v:\n%s", code, err, out)
	}
	if r := rows[0]; !r.Used || r.DNSFrom != "configuration" || r.Metric == nil || *r.Metric != 600 || r.Gateways[0] != "192.168.1.1" {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Used || r.Metric != nil || r.Addresses == nil || !r.Metered {
		t.Errorf("%+v", r)
	}
	if r := rows[2]; r.Used || r.Via != "socks5://127.0.0.1:1080" || r.Metric != nil || r.DNSError != "" || len(r.DNS) > 0 {
		t.Errorf("%+v", r)
	}
	if len(cfg.Links) != 1 {
		t.Errorf("--link is not heard: %v", cfg.Links)
	}
	if code, _, errs, _ := look(t, "links", "--link", "broken"); code != 1 || !strings.Contains(errs, "no netlink here") {
		t.Errorf("code %d, %s", code, errs)
	}
	if code, _, _, _ := look(t, "links", "--link", "a/b"); code != 2 {
		t.Errorf("code %d for a name that is none", code)
	}
}

func TestDoctor(t *testing.T) {
	// The link does not exist here, so sockets cannot be bound to it, which is a problem that must be fixed.
	code, out, errs, _ := look(t, "doctor", "--offline")
	if code != exitUnfit || !strings.Contains(errs, "problems found") {
		t.Errorf("code %d, %s", code, errs)
	}
	for _, want := range []string{"fail     bind wlan0", " -> tributary links", "warn     links "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	code, out, _, _ = look(t, "doctor", "--offline", "--json")
	var all []doctor.Check
	if err := json.Unmarshal([]byte(out), &all); code != exitUnfit || err != nil || len(all) < 10 {
		t.Errorf("code %d, %v:\n%s", code, err, out)
	}
	code, out, _, _ = look(t, "doctor", "--offline", "--config", "/does/not/exist.toml")
	if code != exitUnfit || !strings.Contains(out, "fail     configuration") || !strings.Contains(out, "/does/not/exist.toml") {
		t.Errorf("code %d without the configuration:\n%s", code, out)
	}
}
