package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestMain lets the test binary run as the relay, since bench starts its own binary as the relay.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "relay" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestParseContender(t *testing.T) {
	const curl = "curl -sS --fail --no-buffer -w %{stderr}\n%{time_total} --cacert {ca} "
	for text, want := range map[string]string{
		"tributary:alg3":       curl + "-x http://127.0.0.1:18080 {url}",
		"again:default":        curl + "-x http://127.0.0.1:18080 {url}",
		"relay":                curl + "-x http://127.0.0.1:18080 {url}",
		"single:wifi":          curl + "--interface wifi {url}",
		"get":                  "{binary} get {url} -q -o - --cacert {ca} --link {links}",
		"mptcp":                "mptcpize run " + curl + "{url}",
		"mine=get {url} {out}": "sh -c get {url} {out}",
	} {
		c, err := parseContender(text)
		if got := strings.Join(c.argv, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, n := range []string{"2", "8"} {
		c, err := parseContender("aria2-" + n)
		if err != nil || !slices.Contains(c.argv, "--split="+n) || !slices.Contains(c.argv, "--multiple-interface={links}") {
			t.Errorf("aria2-%s: %q, %v", n, c.argv, err)
		}
	}
	for text, want := range map[string]proxy{
		"tributary:default":  {},
		"again:alg3":         {scheduler: "alg3", again: true},
		"splice":             {relay: true, splice: true},
		"tributary:default?": {},
		"tributary:alg3?transfer_window=4MiB&deny_private=true&x=3": {
			scheduler: "alg3", config: "transfer_window = \"4MiB\"\ndeny_private = true\nx = 3\n",
		},
	} {
		if c, err := parseContender(text); err != nil || *c.proxy != want {
			t.Errorf("%s: %+v, %v", text, c.proxy, err)
		}
	}
	for _, text := range []string{"", "tributary", "tributary:", "single", "aria2-3", "=x", "x=", "tributary:alg3?window"} {
		if c, err := parseContender(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, c)
		}
	}
}

func TestParseContenders(t *testing.T) {
	sc := scenario()
	sc.Links[1].Down.Rate *= 2
	for text, want := range map[string]string{"single:*": "single:wifi single:lte", "single:best": "single:lte"} {
		all, err := parseContenders(benchOptions{contenders: []string{text}}, sc, 1_000_000)
		var names []string
		for _, c := range all {
			names = append(names, c.name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestReplaceTraces(t *testing.T) {
	sc := scenario()
	path := "../../../testdata/traces/lte-10.gz"
	if err := replaceTraces(&sc, []string{"lte=" + path}); err != nil || sc.Links[1].Down.Trace == nil || sc.Links[1].Up.Trace != nil {
		t.Errorf("%v: %+v", err, sc.Links[1])
	}
	for _, bad := range []string{"lte", "gone=" + path, "lte=no-such-file"} {
		if err := replaceTraces(&sc, []string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func scenario() netlab.Scenario {
	return netlab.Scenario{Name: "test", Objects: []netlab.Bytes{300_000}, Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 100*netlab.Mbit, 2*time.Millisecond),
		netlab.Symmetric("lte", 100*netlab.Mbit, 4*time.Millisecond),
	}}
}

func TestBench(t *testing.T) {
	netlab.Require(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: apt-get install curl")
	}
	contenders := []string{
		"single:lte", "right=curl -s -o {out} {url}", "wrong=echo {links} > {out}", "none=true", "fails=echo no >&2; exit 3",
	}
	if _, err := exec.LookPath("aria2c"); err == nil {
		contenders = append(contenders, "aria2-2")
	}
	var said bytes.Buffer
	res, err := bench(t.Context(), scenario(), benchOptions{rounds: 1, contenders: contenders, timeout: time.Minute}, &said)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Limit) != 1 || res.Size != 300_000 || res.Bound <= 0 {
		t.Errorf("%+v", res)
	}
	for _, c := range res.Contenders {
		want := map[string]string{"wrong": "wrong bytes", "none": "no such file", "fails": "exit status 3: no"}[c.Name]
		if (c.Failed == 0) != (want == "") || !strings.Contains(strings.Join(c.errors(), ""), want) {
			t.Errorf("%s: %d failed, errors %q", c.Name, c.Failed, c.errors())
		}
		if c.Failed == 0 && (c.Percent.Median == 0 || c.Requests.Median == 0 || c.Runs[0].Delivered < res.Size) {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	single := res.Contenders[0]
	if single.Most["lte"] != 1 || single.Most["wifi"] != 0 || single.InOrder == nil || single.Waste.Median != 0 {
		t.Errorf("single: %+v", single)
	}
	var table bytes.Buffer
	if err := res.print(&table); err != nil || strings.Count(table.String(), "FAILED") != 3 {
		t.Errorf("%v:\n%s", err, table.String())
	}
}

func TestBenchTributary(t *testing.T) {
	netlab.Require(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: apt-get install curl")
	}
	binary := filepath.Join(t.TempDir(), "tributary")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/tributary")
	build.Dir = "../../.." // the product's module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sc := scenario()
	sc.Events = []netlab.Event{{At: 100 * time.Millisecond, Link: "lte", What: netlab.EventBlackhole}}
	res, err := bench(t.Context(), sc, benchOptions{
		size: "6MB", rounds: 1, timeout: time.Minute, binary: binary, events: true, origin: "brokenpipe",
		contenders: []string{"tributary:default?transfer_window=1MiB", "again:default", "get", "relay", "single:best"},
	}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Contenders {
		if c.Failed > 0 || c.InOrder == nil || c.Pause == nil || c.Requests.Median == 0 || c.Waste.Median > 100 {
			t.Errorf("%s: %v, %+v", c.Name, c.errors(), c)
		}
		if proxied := !c.plain; proxied != (c.CPUPerGB != nil) {
			t.Errorf("%s: processor time %v", c.Name, c.CPUPerGB)
		}
	}
}

func TestBenchHTTPS(t *testing.T) {
	netlab.Require(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: apt-get install curl")
	}
	for version, o := range map[string]benchOptions{"2": {https: true}, "1.1": {https: true, http1: true}} {
		o.rounds, o.timeout = 1, time.Minute
		o.contenders = []string{
			"single:lte", `version=test "$(curl -s -o {out} -w %{http_version} --cacert {ca} {url})" = ` + version,
		}
		res, err := bench(t.Context(), scenario(), o, &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range res.Contenders {
			if c.Failed > 0 {
				t.Errorf("HTTP/%s, %s: %v", version, c.Name, c.errors())
			}
		}
	}
}

func TestRun(t *testing.T) {
	netlab.Require(t)
	sc := scenario()
	sc.Events = []netlab.Event{{Link: "wifi", What: netlab.EventDown}}
	var said bytes.Buffer
	down := []string{"sh", "-c", "while ip link show dev wifi | grep -q LOWER_UP; do :; done; getent ahostsv4 origin.test"}
	if err := run(t.Context(), sc, down, &said); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if !strings.Contains(said.String(), "http://origin.test/300kB") {
		t.Errorf("said %q", said.String())
	}
	var exit *exec.ExitError
	if err := run(t.Context(), sc, []string{"sh", "-c", "exit 7"}, &said); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the command's exit code is lost: %v", err)
	}
}
