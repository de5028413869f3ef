package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// picturesVariable names the variable with a folder for pictures of the live page (make pictures).
const picturesVariable = "TRIBUTARY_PICTURES"

// axeVariable names the variable with the path of axe-core's script, axe.min.js, which looks for accessibility faults.
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
		if c := r.asNobody("curl", "-sS", "-m", "3", live+path); !strings.Contains(string(c.body), "Only root and the user who runs Tributary") {
			t.Errorf("R217 another user sees %q at /%s", c.body, path)
		}
	}
}

// TestLiveNumbers: in each browser, the numbers that the page shows are those of tributary status at the same second, while a download
// runs and after it.
func TestLiveNumbers(t *testing.T) {
	inBrowsers(t, liveNumbers)
}

// differencesJS is a function that takes the output of tributary status --json and returns the parts that the page does
// not show.
const differencesJS = `(status => {
	const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
	const size = n => {
		for (const [unit, one] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (n >= one) return number.format(n / one) + " " + unit;
		return n + " B";
	};
	const text = e => (e?.textContent ?? "nothing").trim();
	const found = [];
	const equal = (what, shown, told) => { if (shown !== told) found.push(what + ": " + shown + ", status: " + told); };
	const cards = [...document.querySelectorAll("#links > li")], running = [...document.querySelectorAll("#running > li")];
	equal("links", cards.length, status.links.length);
	equal("downloads", running.length, status.transfers.length);
	equal("ended", document.querySelectorAll("#ended tr").length, status.ended_transfers);
	const up = status.links.filter(l => l.state === "up").length, n = status.transfers.length;
	equal("summary", text(document.getElementById("summary")),
		up + " of " + status.links.length + " links up · " + n + " download" + (n === 1 ? "" : "s") + " divided · " + status.undivided_running + " over one link");
	status.links.forEach((l, i) => {
		const facts = new Map([...cards[i]?.querySelectorAll("dt") ?? []].map(t => [text(t), text(t.nextElementSibling)]));
		equal("name", text(cards[i]?.querySelector("h3")?.firstChild), l.name);
		equal(l.name + " is up", text(cards[i]?.querySelector(".state")).endsWith(" up"), l.state === "up");
		equal(l.name + " round trip", facts.get("Round trip"), l.rtt_seconds > 0 ? Math.round(l.rtt_seconds * 1000) + " ms" : "–");
		equal(l.name + " bytes", facts.get("Since the start"), size(l.bytes));
		equal(l.name + " today", facts.get("Today"), l.used && size(l.used.today_bytes));
		equal(l.name + " this month", facts.get("This month"), l.used && size(l.used.month_bytes) + (l.used.month_limit_bytes ? " of " + size(l.used.month_limit_bytes) : ""));
	});
	status.transfers.forEach((d, i) => {
		equal("progress", text(running[i]?.querySelector(".facts span")), size(d.head) + " of " + size(d.size));
		const sum = d.links.reduce((s, l) => s + l.bytes, 0);
		equal("shares", [...running[i]?.querySelectorAll(".key") ?? []].map(text).join(), d.links.map(l => l.link + " " + Math.round(100 * l.bytes / sum) + " %").join());
	});
	return found.join("; ");
})`

// halfway serves an object whose second half waits until goOn is closed.
func (r *rig) halfway(o netlab.Object, goOn <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, q, "", time.Time{}, &held{bytes.NewReader(r.content(o.Size)), int64(o.Size) / 2, func() bool {
			select {
			case <-goOn:
				return true
			case <-q.Context().Done():
				return false
			}
		}})
	})
}

func liveNumbers(t *testing.T, open func(*rig, string) surfer) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	settings := filepath.Join(r.lab.Dir, "limits.toml")
	r.write(settings, []byte("[link.lte]\nmonthly = \"10GB\"\n"))
	r.options.Args = []string{"--config", settings}
	r.serve()
	o := r.object(20_000_000)
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	site := r.serveHTTP(8080, r.halfway(o, goOn))
	dir, err := filepath.Abs("../../extension")
	if err != nil {
		t.Fatal(err)
	}
	e := &extended{rig: r, surfer: open(r, dir)}
	e.turn(true)
	e.visit("http://" + netlab.AdminAddr + "/")
	e.sees("the page has begun", `document.getElementById("connection")?.textContent == "Live"`)
	differs := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(differs)
		}
	})
	equal := func(what string, running int) {
		t.Helper()
		e.wait(what, func() bool {
			status := func() (text string, moved int64, n int) {
				text = string(r.ok(r.tributary("status", "--json")).body)
				var s struct {
					Links     []struct{ Bytes int64 }
					Transfers []struct{ Head int64 }
				}
				if err := json.Unmarshal([]byte(text), &s); err != nil {
					t.Fatal(err)
				}
				for _, l := range s.Links {
					moved += l.Bytes
				}
				return text, moved, len(s.Transfers)
			}
			text, before, n := status()
			differs = e.eval(differencesJS + "(" + text + ")")
			_, after, _ := status()
			// A second in which bytes arrive has more than one right answer.
			return differs == "" && before == after && before > 4_000_000 && n == running
		})
	}
	file := r.file()
	var all sync.WaitGroup
	defer all.Wait()
	defer release()
	all.Go(func() { r.client("curl", "-sS", "-o", file, "-x", proxyURL, site+"/file.bin") })
	equal("the page shows what status tells of a download", 1)
	release()
	all.Wait()
	equal("the page shows what status tells after it", 0)
	r.isObject(r.read(file), o)
}

// held is content whose bytes after an offset have to wait.
type held struct {
	*bytes.Reader
	from int64
	wait func() bool
}

func (h *held) Read(p []byte) (int, error) {
	at := h.Size() - int64(h.Len())
	if at >= h.from {
		if !h.wait() {
			return 0, io.ErrClosedPipe
		}
		return h.Reader.Read(p)
	}
	return h.Reader.Read(p[:min(int64(len(p)), h.from-at)])
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

// TestLivePages measures how much 50 open pages slow down a download. Rates are compared and not asserted.
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
