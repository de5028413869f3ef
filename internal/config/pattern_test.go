package config

import (
	"slices"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	c, err := Parse(`
[link."rmnet*"]
metered = true
monthly = "1GB"
max_rate = "8Mbit/s"
[link."rmnet_data*"]
enabled = false
[link.rmnet_data0]
enabled = true
[link."ccmni?"]
trusted = false
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Tables("rmnet_data0"); !slices.Equal(got, []string{"rmnet_data0", "rmnet_data*", "rmnet*"}) {
		t.Errorf("tables %q", got)
	}
	for name, want := range map[string]struct {
		allowed, metered, trusted bool
		account                   string
	}{
		"rmnet0": {true, true, true, "rmnet*"}, "rmnet_data0": {true, true, true, "rmnet*"}, "rmnet_data1": {false, true, true, "rmnet*"},
		"ccmni1": {true, false, false, ""}, "ccmni12": {true, false, true, ""}, "wlan0": {true, false, true, ""},
	} {
		m := c.LinkOf(name).Metered
		if c.Allows(name) != want.allowed || (m != nil && *m) != want.metered || c.Trusts(name) != want.trusted || c.Account(name) != want.account || c.RateTable(name) != want.account {
			t.Errorf("%s: allowed %v, metered %v, trusted %v, account %q", name, c.Allows(name), m, c.Trusts(name), c.Account(name))
		}
	}
	if c.Named("rmnet_data1") || !c.Named("rmnet_data0") || c.Named("rmnet0") {
		t.Error("another link is named")
	}
}

// TestAlternatives: a pattern may have several, whose links share one account.
func TestAlternatives(t *testing.T) {
	const pattern = "*rmnet*|ccmni?|usb0"
	c, err := Parse("[link.\"" + pattern + "\"]\nmonthly = \"1GB\"\n")
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"rmnet0": pattern, "v4-rmnet_data1": pattern, "ccmni1": pattern, "usb0": pattern, "ccmni12": "", "usb01": "", "wlan0": "",
	} {
		if got := c.Account(name); got != want {
			t.Errorf("%s is counted on %q, want %q", name, got, want)
		}
	}
}

func TestPatternProblems(t *testing.T) {
	for text, want := range map[string]string{
		"[link.\"rmnet[\"]\nmonthly = \"1GB\"": "is not a pattern",
		"[link.\"a*|\"]\nmonthly = \"1GB\"":    "is not a pattern",
		"[link.\"a*|b[\"]\nmonthly = \"1GB\"":  "is not a pattern",
		"[link.\"a/*\"]\nmonthly = \"1GB\"":    "is not a pattern",
		"[link.\"of*\"]\nvia = \"socks5://h\"": "stands for several links",
		"links = [\"rmnet*\"]":                 "is a pattern: name each link",
	} {
		c, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err = c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
