package main

import (
	"bytes"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/lab"
)

func TestParseContender(t *testing.T) {
	for text, want := range map[string]string{
		"tributary:alg3":       "curl -sS --fail -w %{time_total} --cacert {ca} -o {out} -x http://127.0.0.1:18080 {url}",
		"single:wifi":          "curl -sS --fail -w %{time_total} --cacert {ca} -o {out} --interface wifi {url}",
		"get":                  "{binary} get {url} -o {out} --cacert {ca} --link {links}",
		"mptcp":                "mptcpize run curl -sS --fail -w %{time_total} --cacert {ca} -o {out} {url}",
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
	for _, text := range []string{"", "tributary", "tributary:", "single", "aria2-3", "=x", "x="} {
		if c, err := parseContender(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, c)
		}
	}
}

func TestSummary(t *testing.T) {
	var c contenderResult
	for _, took := range []time.Duration{4 * time.Second, 2 * time.Second, 2500 * time.Millisecond} {
		c.add(2*time.Second, took, nil)
	}
	c.sum()
	if c.Min != 50 || c.Median != 80 || c.Max != 100 {
		t.Errorf("%+v", c)
	}
	c.add(2*time.Second, time.Second, errors.New("wrong bytes"))
	c.sum()
	if c.Min != 0 || c.Median != 65 || c.Right {
		t.Errorf("a failed round counts as 0: %+v", c)
	}
}

func scenario() lab.Scenario {
	return lab.Scenario{Name: "test", Objects: []lab.Bytes{300_000}, Links: []lab.LinkSpec{
		lab.Symmetric("wifi", 100*lab.Mbit, 2*time.Millisecond),
		lab.Symmetric("lte", 100*lab.Mbit, 4*time.Millisecond),
	}}
}

func TestBench(t *testing.T) {
	lab.Require(t)
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
	if len(res.Limit) != 1 || res.Size != 300_000 {
		t.Errorf("%+v", res)
	}
	for _, c := range res.Contenders {
		want := map[string]string{"wrong": "wrong bytes", "none": "no such file", "fails": "exit status 3: no"}[c.Name]
		if c.Right != (want == "") || !strings.Contains(strings.Join(c.Errors, ""), want) {
			t.Errorf("%s: right %v, errors %q", c.Name, c.Right, c.Errors)
		}
		if c.Right && c.Median == 0 {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	var table bytes.Buffer
	if err := res.print(&table); err != nil || strings.Count(table.String(), "FAILED") != 3 {
		t.Errorf("%v:\n%s", err, table.String())
	}
}

func TestBenchHTTPS(t *testing.T) {
	lab.Require(t)
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
			if !c.Right {
				t.Errorf("HTTP/%s, %s: %v", version, c.Name, c.Errors)
			}
		}
	}
}

func TestRun(t *testing.T) {
	lab.Require(t)
	sc := scenario()
	sc.Events = []lab.Event{{Link: "wifi", What: lab.EventDown}}
	var said bytes.Buffer
	down := []string{"sh", "-c", "while ip link show dev wifi | grep -q LOWER_UP; do :; done; getent ahostsv4 origin.lab"}
	if err := run(t.Context(), sc, down, &said); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if !strings.Contains(said.String(), "http://origin.lab/300kB") {
		t.Errorf("said %q", said.String())
	}
	var exit *exec.ExitError
	if err := run(t.Context(), sc, []string{"sh", "-c", "exit 7"}, &said); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the command's exit code is lost: %v", err)
	}
}
