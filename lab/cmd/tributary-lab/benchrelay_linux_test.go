package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestRelayRows: each row's scenario has the links that its contenders need, in the direction that it measures.
func TestRelayRows(t *testing.T) {
	t.Chdir("../../..")
	for _, r := range relayRows {
		sc, err := load(r.Scenario)
		if err != nil {
			t.Errorf("row %s: %v", r.ID, err)
			continue
		}
		if r.Upload {
			sc = reversed(sc)
		}
		size, err := benchSize(sc, r.Size)
		if err == nil {
			_, err = netlab.PhysicalBound(sc, size)
		}
		if err != nil {
			t.Errorf("row %s: %v", r.ID, err)
		}
	}
	for _, text := range relayContenders {
		if c, err := parseContender(text); err != nil || !c.ownTime {
			t.Errorf("contender %s: %+v, %v", text, c, err)
		}
	}
}

// TestKeepRelay: the document has the shares of all contenders, of the limit or the bound, and keeps rows that are not run.
func TestKeepRelay(t *testing.T) {
	docs := t.TempDir()
	path := filepath.Join(docs, "RELAY.md")
	if err := os.WriteFile(path, []byte("before\n"+relayBlockBegin+"\nold\n"+relayBlockEnd+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"4", "up", "1"} {
		r := *measured()
		r.Congestion = "bbr"
		r.Contenders[0].Name, r.Contenders[1].Name = "lanes", "mptcp"
		if err := keepRelay(docs, rowResult{Row: id, Version: "tributary v" + id, Rounds: 2, result: r}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "\nafter\n") || strings.Contains(got, "old") {
		t.Errorf("%s", got)
	}
	at := -1
	for _, want := range []string{ // relative to the limit of 2 s, and in row 4 to the bound of 1 s
		"| 1 | 80 + 60 Mbit/s (ramp), 400B | bbr | limit | 100.0 (97.5-102.5) | - |",
		"| bound | 50.0 (50.0-50.0) | - |",
		"| up | upload, 40 + 25 Mbit/s, 400B | bbr | limit | 100.0 (97.5-102.5) | - |",
	} {
		i := strings.Index(got, want)
		if i <= at {
			t.Errorf("want %s in:\n%s", want, got)
		}
		at = i
	}
}

// TestBenchUpload: only bytes that the origin has received count, and an upload of other bytes fails.
func TestBenchUpload(t *testing.T) {
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
	o := benchOptions{rounds: 1, timeout: time.Minute, upload: true, https: true, binary: binary, contenders: []string{"single:lte", "lanes:again"}}
	res, err := bench(t.Context(), scenario(), o, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Limit[0] <= 0 || res.Bound <= 0 {
		t.Errorf("%+v", res)
	}
	for _, c := range res.Contenders {
		if c.Failed > 0 || c.InOrder == nil || c.Requests.Median != 1 || c.Runs[0].Delivered < res.Size {
			t.Errorf("%s: %v, %+v", c.Name, c.errors(), c)
		}
	}
	if single := res.Contenders[0]; single.Most["lte"] != 1 || single.Most["wifi"] != 0 {
		t.Errorf("single: %+v", single)
	}
	o.contenders = []string{"aria2-2"}
	if _, err := bench(t.Context(), scenario(), o, &bytes.Buffer{}); err == nil {
		t.Error("a contender that cannot upload is accepted")
	}
}

// TestUploadOfOtherBytes: the bytes that an origin received are compared with the object.
func TestUploadOfOtherBytes(t *testing.T) {
	u := &uploadOrigin{size: 3}
	enough := make(chan struct{})
	u.enough = enough
	seen := newObserver()
	u.expect(seen)
	u.note(seen, []byte("ab"))
	u.note(newObserver(), []byte("c")) // from an upload that is over
	<-enough
	if d := seen.done(); d.Bytes != 2 || len(d.Reads) != 1 {
		t.Errorf("%+v", d)
	}
	if requests, err := u.Requests(); err != nil || !slices.Equal(requests, nil) {
		t.Errorf("%v, %v", requests, err)
	}
}
