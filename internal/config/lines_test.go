package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestLines: each error is reported with the line of its key, in the order of the file.
func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // after the path
	}{
		"basic string of several lines":   {"# c\nlisten = \"\"\"\na\nb\"\"\"\nvpn = \"x\"", []string{":2: listen: ", ":5: vpn: "}},
		"literal string of several lines": {"[link.a]\nenabled = '''\n\nx'''\nmetered = 1", []string{":2: [link.a] enabled: ", ":5: [link.a] metered: "}},
		"list of several lines":           {"links = [\n \"a/b\",\n]\nadmn = 1", []string{":1: links: ", ":4: admn: "}},
		"dotted key":                      {"\nlink.a.dns = [\"x\"]\nlink.b.metered = 3", []string{":2: [link.a] dns: ", ":3: [link.b] metered: "}},
		"dotted key in a table":           {"[link]\na.metered = 1\n\n\"b.1\".dns = [\"x\"]", []string{":2: [link.a] metered: ", `:4: [link."b.1"] dns: `}},
		"inline table": {
			"link = { a = { metered = 1, dns = [\"x\"] },\n\n b.enabled = 2 }",
			[]string{":1: [link.a] metered: ", ":1: [link.a] dns: ", ":3: [link.b] enabled: "},
		},
		"key of the same name in another table": {"[link.a]\ndns = [\"1.1.1.1\"]\n[link.b]\ndns = [\"x\"]", []string{":4: [link.b] dns: "}},
		"key in a string and in a comment":      {"# vpn = 1\nlisten = '''\nvpn = \"x\"\n127.0.0.1:1'''\nvpn = \"y\"", []string{":2: listen: ", ":5: vpn: "}},
		"CRLF":                                  {"\r\nlisten = '''\r\n\r\n'''\r\nvpn = 1\r\n", []string{":2: listen: ", ":5: vpn: "}},
		"unread and refused, mixed":             {"vpn = \"x\"\nlistn = 1\nadmin = \"y\"", []string{":1: vpn: ", ":2: listn: ", ":3: admin: "}},
		"a default beside the unread one":       {"budget = true\ntransfer_window = \"128MiB\"", []string{":1: budget: want"}},
		"a default that does not fit":           {"\ntransfer_window = \"128MiB\"", []string{":2: budget: 64MiB is less"}},
		"upstream proxy":                        {"[link.a]\nvia = \"socks4://h\"\n[link.b]\nvia = \"socks5://h\"\ndns = [\"1.1.1.1\"]", []string{":2: [link.a] via: ", ":5: [link.b] dns: "}},
		"table of a wrong name":                 {"\n[link.\"a/b\"]\n", []string{`:2: [link."a/b"]: `}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.toml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Load(path, os.Getenv)
			if err == nil {
				err = f.Check()
			}
			lines := strings.Split(fmt.Sprint(err), "\n")
			ok := len(lines) == len(c.want)
			for i := range lines {
				ok = ok && strings.HasPrefix(lines[i], path+c.want[i])
			}
			if !ok {
				t.Errorf("got\n%v\nwant %q", err, c.want)
			}
		})
	}
}

func TestSuggestions(t *testing.T) {
	for text, want := range map[string]string{
		"LISTEN = \"x\"":                 "did you mean listen?",
		"log-level = \"info\"":           "did you mean log_level?",
		"[link.a]\nlog_level = \"x\"":    "write it above the first [link.NAME]",
		"dns = [\"1.1.1.1\"]":            "write it below a [link.NAME]",
		"[link.a]\nmax-rate = \"1\"":     "did you mean max_rate?",
		"alg3 = \"literal\"":             `write scheduler = "alg3-literal"`,
		"continuation = \"cursor\"":      "line 1: continuation: was removed",
		"[link.a]\ncontinuation = \"x\"": "[link.a] continuation: is not a known key",
		"[link.a]\n[link.a.more]\nx=1":   "line 2: [link.a] more: is not a known key",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestEmptyIsUnset: adding an empty list or table changes nothing, so a reload accepts it.
func TestEmptyIsUnset(t *testing.T) {
	c, err := Parse("links = []\nallow_users = []\nallow_destinations = []\n[link]\n")
	if err != nil || !reflect.DeepEqual(c, Default()) {
		t.Errorf("%+v, %v", c, err)
	}
}
