package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// picturesVariable names a folder for pictures of the live page (make pictures).
const picturesVariable = "TRIBUTARY_PICTURES"

// axeVariable names axe-core's script, axe.min.js, which looks for faults of accessibility.
const axeVariable = "TRIBUTARY_AXE"

// TestLivePage: a browser sees two downloads over both links; the page's numbers are those of tributary status; another user sees
// nothing.
func TestLivePage(t *testing.T) {
	need(t, "chromium", "chromium")
	r := newRig(t, shipped(t, "hs"), netlab.NginxOptions{})
	settings := filepath.Join(r.lab.Dir, "limits.toml")
	r.write(settings, []byte("budget = \"64GiB\"\n[link.lte]\nmonthly = \"10GB\"\n"))
	r.options.Args = []string{"--config", settings}
	r.serve()
	o := r.object(60_000_000)
	live := "http://" + netlab.AdminAddr + "/"
	var all sync.WaitGroup
	defer all.Wait()
	b := openBrowser(r)
	b.size(1280, 1000, false)
	b.call("Page.navigate", map[string]any{"url": live}, nil)
	b.shows("it has begun", `document.getElementById("connection").textContent == "Live"`)
	for range 2 {
		file := r.file()
		all.Go(func() { r.client("curl", "-sS", "-o", file, "-x", proxyURL, o.URL) })
	}
	name := o.URL[strings.LastIndexByte(o.URL, '/')+1:]
	b.shows("both downloads and the links that carry them", fmt.Sprintf(`(() => {
		const all = [...document.querySelectorAll("#running li")];
		return all.length == 2 && all.every(l => l.innerText.includes(%q) && l.innerText.includes("wifi") && l.innerText.includes("lte"));
	})()`, name))
	b.shows("the rate of both", `parseFloat(document.getElementById("total").textContent) > 60`)
	b.shows("bytes of the day and the month, against the limit", `(() => {
		const card = [...document.querySelectorAll("#links li")].find(l => l.innerText.includes("lte")).innerText.replaceAll("\n", " ");
		return /Today [0-9.]+ MB/.test(card) && /This month [0-9.]+ MB of 10 GB/.test(card);
	})()`)
	b.shows("what the doctor finds: the budget is more than half of the memory", `document.getElementById("found").innerText.includes("budget")`)
	b.shows("the chart", `document.querySelector("#chart canvas") != null && document.querySelectorAll("#chart .u-series").length >= 3`)
	b.picture("live-light", false)
	b.picture("live-dark", true)
	b.size(360, 800, true)
	b.picture("live-phone", false)
	b.size(1280, 1000, false)
	all.Wait()
	b.shows("what has ended", `document.querySelectorAll("#ended tr").length == 2`)
	if script := os.Getenv(axeVariable); script != "" {
		b.axe(string(r.read(script)))
	}

	type state struct {
		Links []struct {
			Name, State string
			Bytes       int64
			Waste       int64 `json:"waste_bytes"`
		}
		Ended int64 `json:"ended_transfers"`
	}
	var page struct{ Status state }
	first, _, _ := strings.Cut(string(r.client("curl", "-sS", "-N", "-m", "3", live+"live/events").body), "\n")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(first, "data: ")), &page); err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	var status state
	if err := json.Unmarshal(r.ok(r.tributary("status", "--json")).body, &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Links) != 2 || status.Ended != 2 || page.Status.Ended != status.Ended {
		t.Errorf("status: %+v, page: %+v", status, page.Status)
	}
	for i, l := range status.Links {
		if p := page.Status.Links[i]; p != l || l.Bytes == 0 {
			t.Errorf("status: %+v, page: %+v", l, p)
		}
	}
	for _, path := range []string{"", "live/events", "live/page.js"} {
		if c := r.asNobody("curl", "-sS", "-m", "3", live+path); !strings.Contains(string(c.body), "This page is for the user who runs Tributary") {
			t.Errorf("R217 another user sees %q at /%s", c.body, path)
		}
	}
}

// axe fails the test if axe-core finds anything serious in the page, light or dark, wide or narrow.
func (b *browser) axe(script string) {
	b.Helper()
	b.call("Runtime.evaluate", map[string]any{"expression": script}, nil)
	for _, width := range []int{1280, 360} {
		b.size(width, 1000, width == 360)
		for _, dark := range []bool{false, true} {
			b.colours(dark)
			var value struct {
				Result struct {
					Value string `json:"value"`
				} `json:"result"`
			}
			b.call("Runtime.evaluate", map[string]any{"awaitPromise": true, "expression": `axe.run().then(r => JSON.stringify({
				passed: r.passes.length,
				serious: r.violations.filter(v => v.impact == "serious" || v.impact == "critical").map(v => [v.id, v.nodes.map(n => n.html + " " + n.failureSummary)]),
				others: r.violations.filter(v => v.impact != "serious" && v.impact != "critical").map(v => v.id),
			}))`}, &value)
			var found struct {
				Passed          int
				Serious, Others []any
			}
			if err := json.Unmarshal([]byte(value.Result.Value), &found); err != nil {
				b.Fatalf("axe-core: %q: %v", value.Result.Value, err)
			}
			b.Logf("axe-core, %d px, dark %v: %d rules hold, not serious: %v", width, dark, found.Passed, found.Others)
			if len(found.Serious) > 0 || found.Passed < 10 {
				b.Errorf("axe-core, %d px, dark %v: %v", width, dark, found.Serious)
			}
		}
	}
}

// TestLivePages measures what 50 open pages cost a download. Rates are compared and not asserted.
func TestLivePages(t *testing.T) {
	if !matrix() {
		t.Skip("a measurement, for make matrix")
	}
	r := start(t, shipped(t, "hs"))
	o := r.object(60_000_000)
	const pages, rounds = 50, 3
	var without, with time.Duration
	fetch := func() time.Duration {
		began := time.Now()
		r.isObject(r.ok(r.curl("-o", "-", "-x", proxyURL, o.URL)).body, o)
		return time.Since(began)
	}
	fetch()
	for range rounds {
		without += fetch()
		ctx, cancel := context.WithCancel(r.ctx)
		var all sync.WaitGroup
		var files []string
		for range pages {
			file := r.file()
			files = append(files, file)
			cmd := r.lab.Client(ctx, "curl", "-sS", "-N", "-o", file, "http://"+netlab.AdminAddr+"/live/events")
			all.Go(func() { _ = cmd.Run() }) // it is killed
		}
		seen := func() (n int) {
			for _, file := range files {
				if i, err := os.Stat(file); err == nil && i.Size() > 0 {
					n++
				}
			}
			return n
		}
		r.until("all pages show something", func() bool { return seen() == pages })
		with += fetch()
		cancel()
		all.Wait()
	}
	t.Logf("the rate with %d pages open is %.1f %% of that with none", pages, 100*without.Seconds()/with.Seconds())
}

// shows waits until an expression is true in the page.
func (b *browser) shows(what, expression string) {
	b.Helper()
	b.until(what, func() bool {
		var value struct {
			Result struct {
				Value bool `json:"value"`
			} `json:"result"`
		}
		b.call("Runtime.evaluate", map[string]any{"expression": expression}, &value)
		return value.Result.Value
	})
}

// size sets the size of the window, in CSS pixels.
func (b *browser) size(width, height int, mobile bool) {
	b.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 2, "mobile": mobile}, nil)
	b.shows("the page is as wide as its window", `document.documentElement.scrollWidth <= innerWidth`)
}

// colours makes the page light or dark.
func (b *browser) colours(dark bool) {
	b.Helper()
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.shows("its colours", fmt.Sprintf(`matchMedia("(prefers-color-scheme: %s)").matches`, scheme))
}

// picture keeps a picture of the page, if pictures are wanted.
func (b *browser) picture(name string, dark bool) {
	b.Helper()
	b.colours(dark)
	dir := os.Getenv(picturesVariable)
	if dir == "" {
		return
	}
	var shot struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": false}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}
