package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// surfer drives a browser with our extension.
type surfer interface {
	// eval evaluates a JavaScript expression in the page on top, awaits the value if it is a promise, and returns it as
	// text.
	eval(expression string) string
	// press clicks an element of the page on top as a user does.
	press(selector string)
	// menu chooses the extension's entry in the menu of an element of the page on top.
	menu(selector string)
	// turn brings a page to the top: one of the web, or the extension's options page, which the browser opened at
	// installation.
	turn(web bool)
	// visit navigates the page on top to a URL, which may be a download.
	visit(url string)
	// fill sets cookies of the profile, and returns how many the profile has then.
	fill(cookies []cookie) int
}

// cookie belongs to a host.
type cookie struct{ host, name, value string }

// run returns an expression that runs statements.
func run(statements string) string { return `(() => { ` + statements + `; return ""; })()` }

// extensionAPI is the object whose methods a page of the extension calls.
const extensionAPI = `(globalThis.browser ?? chrome)`

// extended is a browser with our extension. Its options page is on top unless a test turns to another.
type extended struct {
	*rig
	surfer
	folder string // folder of the program's downloads
	site   *downloadSite
}

// openExtended starts a browser with the extension, and pairs it as a user does: with a code from the terminal.
func openExtended(r *rig, folder string, open func(*rig, string) surfer) *extended {
	r.Helper()
	dir, err := filepath.Abs("../../extension")
	if err != nil {
		r.Fatal(err)
	}
	e := &extended{rig: r, surfer: open(r, dir), folder: folder, site: r.serveDownloads()}
	code := strings.TrimSpace(string(r.ok(r.tributary("rpc", "pair")).body))
	e.turn(false)
	e.sees("it is not paired", `document.getElementById("state")?.textContent == "Not paired yet."`)
	e.eval(run(fmt.Sprintf(`document.getElementById("code").value = %q`, code)))
	e.press("#pair button")
	e.sees("it is paired", `document.getElementById("state").textContent.startsWith("Paired with Tributary")`)
	return e
}

// wait is until for conditions that are costly for a browser to check: it checks less often.
func (e *extended) wait(what string, met func() bool) {
	e.Helper()
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	e.until(what, func() bool {
		select {
		case <-pause.C:
			return met()
		case <-e.ctx.Done():
			return false
		}
	})
}

// sees waits until an expression is true in the page on top.
func (e *extended) sees(what, expression string) {
	e.Helper()
	e.wait(what, func() bool { return e.eval(`(async () => (await (`+expression+`)) ? "yes" : "")()`) == "yes" })
}

// order navigates the page of the web to a path of the site.
func (e *extended) order(path string) {
	e.Helper()
	e.turn(true)
	e.visit(e.site.url + path)
	e.turn(false)
}

// do runs statements in a page of the site.
func (e *extended) do(statements string) {
	e.Helper()
	e.turn(true)
	e.visit(e.site.url + "/page")
	e.sees("the page", `document.title == "page"`)
	e.eval(run(statements))
	e.turn(false)
}

// tells sends a message to the extension's worker.
func (e *extended) tells(message string) {
	e.Helper()
	e.eval(extensionAPI + `.runtime.sendMessage(` + message + `).then(() => "", () => "")`)
}

// kept is a download in the browser's list.
type kept struct {
	URL, State, Filename, Danger string
	Size                         int64 `json:"fileSize"`
}

// list returns the browser's list of downloads.
func (e *extended) list() (all []kept) {
	e.Helper()
	if err := json.Unmarshal([]byte(e.eval(extensionAPI+`.downloads.search({}).then(JSON.stringify)`)), &all); err != nil {
		e.Fatal(err)
	}
	return all
}

// has waits until the browser has downloaded an object by itself.
func (e *extended) has(what, part string, size netlab.Bytes) (file string) {
	e.Helper()
	e.wait("the browser has "+what, func() bool {
		for _, d := range e.list() {
			if strings.Contains(d.URL, part) && d.State == "complete" && d.Size == int64(size) {
				file = d.Filename
				return true
			}
		}
		return false
	})
	return file
}

// given waits until the extension has handed over n downloads, and none is left in progress in the browser.
func (e *extended) given(n int) {
	e.Helper()
	e.sees(fmt.Sprintf("%d downloads are given away", n), fmt.Sprintf(
		`(async a => Object.keys((await a.storage.local.get("given")).given ?? {}).length == %d && (await a.downloads.search({state: "in_progress"})).length == 0)%s`, n, extensionAPI))
}

// arrives waits until the program has downloaded an object, and checks its bytes.
func (e *extended) arrives(o netlab.Object) {
	e.Helper()
	file := filepath.Join(e.folder, o.Size.String()+".bin")
	e.wait("the program has it", func() bool { _, err := os.Stat(file); return err == nil })
	e.isObject(e.read(file), o)
}

// downloadSite serves objects to be saved.
type downloadSite struct {
	url    string
	orders atomic.Int64  // number of orders by POST
	slow   chan struct{} // a slow answer waits for it halfway
	held   chan struct{} // all other requests for the same object wait for it
	asked  chan struct{} // receives a value for each of those requests
}

// serveDownloads starts a site:
//
//	/save/SIZE     an object
//	/guarded/SIZE  the same, for a browser that has logged in and comes from the page
//	/first/SIZE    leads there
//	/slow/SIZE     is slow the first time, and held later, for the same cookies only
//	/order/SIZE    an answer to POST
//	/page          a page with a form and a link
func (r *rig) serveDownloads() *downloadSite {
	r.Helper()
	s := &downloadSite{slow: make(chan struct{}), held: make(chan struct{}), asked: make(chan struct{}, 100)}
	var slow atomic.Int64
	var cookies atomic.Value
	serve := func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="`+q.PathValue("size")+`.bin"`)
		w.Header().Set("ETag", `"`+q.PathValue("size")+`"`)
		http.ServeFile(w, q, filepath.Join(r.nginx.Root(), q.PathValue("size")))
	}
	wait := func(q *http.Request, until <-chan struct{}) bool {
		select {
		case <-until:
			return true
		case <-q.Context().Done():
			return false
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/save/{size}", serve)
	mux.HandleFunc("/slow/{size}", func(w http.ResponseWriter, q *http.Request) {
		if slow.Add(1) == 1 {
			cookies.Store(q.Header.Get("Cookie"))
			serve(&halved{ResponseWriter: w, wait: func() bool { return wait(q, s.slow) }}, q)
			return
		}
		s.asked <- struct{}{}
		if cookies.Load() != q.Header.Get("Cookie") {
			http.Error(w, "other cookies", http.StatusForbidden)
			return
		}
		if wait(q, s.held) {
			serve(w, q)
		}
	})
	mux.HandleFunc("/guarded/{size}", func(w http.ResponseWriter, q *http.Request) {
		c, err := q.Cookie("session")
		if err != nil || c.Value != "abc" || !strings.HasPrefix(q.UserAgent(), "Mozilla/") || q.Referer() != s.url+"/page" {
			http.Error(w, "log in", http.StatusForbidden)
			return
		}
		serve(w, q)
	})
	mux.HandleFunc("/first/{size}", func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "/guarded/"+q.PathValue("size"), http.StatusFound)
	})
	mux.HandleFunc("POST /order/{size}", func(w http.ResponseWriter, q *http.Request) {
		s.orders.Add(1)
		serve(w, q)
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>page</title><form id="form" method="post"></form><a id="link">link</a>`)
	})
	s.url = r.serveHTTP(8080, mux)
	return s
}

// halved is an answer that waits once half of its first MB is written.
type halved struct {
	http.ResponseWriter
	wait    func() bool
	written int
}

func (h *halved) Write(p []byte) (int, error) {
	const half = 500_000
	if h.written < half && h.written+len(p) >= half {
		if err := http.NewResponseController(h.ResponseWriter).Flush(); err != nil {
			return 0, err
		}
		if !h.wait() {
			return 0, io.ErrClosedPipe
		}
	}
	n, err := h.ResponseWriter.Write(p)
	h.written += n
	return n, err
}

// TestExtension: the extension hands a large download behind a login to the program, which downloads it over both links;
// whatever is small, made by the page or ordered by POST stays in the browser. The profile is full of cookies.
func TestExtension(t *testing.T) {
	inBrowsers(t, handOver)
}

// inBrowsers runs test with each browser that the extension supports.
func inBrowsers(t *testing.T, test func(t *testing.T, open func(*rig, string) surfer)) {
	if !matrix() {
		t.Skip("it takes minutes: make matrix")
	}
	t.Run("Chromium", func(t *testing.T) {
		need(t, "chromium", "chromium")
		test(t, chromium)
	})
	t.Run("Firefox", func(t *testing.T) {
		need(t, "firefox-esr", "firefox-esr")
		test(t, firefox)
	})
}

func handOver(t *testing.T, open func(*rig, string) surfer) {
	r, folder := startRPC(t, quick())
	large, posted, small := r.object(200_000_000), r.object(8_000_000), r.object(1_000_000)
	e := openExtended(r, folder, open)
	// Chromium keeps at most 3,300 of the 5,000 cookies and forgets the oldest. The site's own are the last.
	var cookies []cookie
	for i := range 5000 {
		host := fmt.Sprintf("h%d.example", i/50)
		if i >= 4950 {
			host = netlab.OriginAddr.String()
		}
		cookies = append(cookies, cookie{host, fmt.Sprintf("name%d", i), strings.Repeat("x", 40)})
	}
	cookies[len(cookies)-1].name, cookies[len(cookies)-1].value = "session", "abc"
	n := e.fill(cookies)
	if n < 3000 {
		t.Fatalf("the profile has %d cookies", n)
	}
	t.Logf("the profile has %d cookies", n)

	e.do(fmt.Sprintf(`const a = document.getElementById("link"); a.href = "/first/%s"; a.click()`, large.Size))
	e.visit(e.eval(extensionAPI + `.runtime.getURL("popup.html")`))
	e.sees("the popup shows what each link brings", `/wifi [1-9][0-9.]* MB · lte [1-9][0-9.]* MB/.test(document.getElementById("running")?.innerText)`)
	e.given(1)
	e.press(`#running button[aria-label^="Pause"]`)
	e.sees("the popup shows that it is paused", `/[0-9.]+ MB of 200 MB, [1-9][0-9]? %, paused/.test(document.getElementById("running").innerText)`)
	e.press(`#running button[aria-label^="Resume"]`)
	e.sees("the popup shows that it goes on", `/ %, [1-9][0-9.]* Mbit/.test(document.getElementById("running").innerText)`)
	e.arrives(large)
	for _, d := range e.list() {
		t.Errorf("the browser still has %+v", d)
	}
	var stopped []struct {
		Tributary struct {
			Links []struct{ Link, Bytes string }
		}
	}
	e.wait("it says so", func() bool {
		r.rpcCall(&stopped, "aria2.tellStopped", 0, 10, []string{"tributary"})
		return len(stopped) == 1
	})
	if links := stopped[0].Tributary.Links; len(links) != 2 || len(links[0].Bytes) < 8 || len(links[1].Bytes) < 8 {
		t.Errorf("links: %+v, want 10 MB at least by each", links)
	}
	t.Logf("links: %+v", stopped[0].Tributary.Links)

	e.order("/save/" + small.Size.String())
	r.isObject(r.read(e.has("what is small", "/save/", small.Size)), small)
	e.do(`const a = document.getElementById("link"); a.download = "blob.bin"; a.href = URL.createObjectURL(new Blob([new Uint8Array(7e6)])); a.click()`)
	e.has("what a page has made", "blob:", 7_000_000)
	e.do(fmt.Sprintf(`const f = document.getElementById("form"); f.action = "/order/%s"; f.submit()`, posted.Size))
	r.isObject(r.read(e.has("what was posted", "/order/", posted.Size)), posted)
	if n := e.site.orders.Load(); n != 1 {
		t.Errorf("it was ordered %d times", n)
	}
	if active, ended := r.globalStat(); active != "0" || ended != "1" {
		t.Errorf("the program has %s and %s downloads, want none and one", active, ended)
	}
	// A download that the user sends to the program from the menu goes there whatever its size. The browser's own answer
	// stops halfway: the browser would often have a small object before the program's first answer, and then keep it.
	close(e.site.held)
	e.turn(true)
	e.visit(e.site.url + "/page")
	e.sees("the page", `document.title == "page"`)
	e.eval(run(fmt.Sprintf(`document.getElementById("link").href = "/slow/%s"`, small.Size)))
	e.menu("#link")
	e.turn(false)
	e.arrives(small)
}

// TestExtensionKilled: the program is killed before, while and after a download is handed to it; no download is lost.
func TestExtensionKilled(t *testing.T) {
	inBrowsers(t, killed)
}

func killed(t *testing.T, open func(*rig, string) surfer) {
	r, folder := startRPC(t, quick())
	r.stopped = true // more than once
	before, during, after := r.object(6_000_000), r.object(10_000_000), r.object(90_000_000)
	e := openExtended(r, folder, open)

	r.kill()
	e.order("/save/" + before.Size.String())
	r.isObject(r.read(e.has("what came while nothing answered", "/save/", before.Size)), before)

	r.serveRPC()
	e.finds()
	e.order("/slow/" + during.Size.String())
	select {
	case <-e.site.asked:
	case <-r.ctx.Done():
		t.Fatal("the program was not asked")
	}
	r.kill()
	close(e.site.slow)
	r.isObject(r.read(e.has("what the program was asked for", "/slow/", during.Size)), during)
	close(e.site.held)
	r.serveRPC()
	e.finds()
	e.sees("the program is told to forget it", extensionAPI+`.storage.local.get("open").then(s => Object.keys(s.open ?? {}).length == 0)`)

	e.order("/save/" + after.Size.String())
	e.given(1)
	r.kill()
	r.serveRPC()
	e.arrives(after)
}

// finds waits until the extension has found the program again: Firefox delays a WebSocket to a port that refused some, longer after
// each, up to a minute.
func (e *extended) finds() {
	e.Helper()
	e.wait("the extension finds the program", func() bool {
		e.tells(`{ look: true }`)
		return e.eval(extensionAPI+`.action.getBadgeText({}).then(t => t || "none")`) != "off"
	})
}

// extendedChromium is Chromium, driven by the DevTools protocol.
type extendedChromium struct {
	*browser
	options, web, worker string // sessions
}

func chromium(r *rig, dir string) surfer {
	r.Helper()
	b := openBrowser(r, "--headless=new", "--enable-unsafe-extension-debugging", "--disable-features=LocalNetworkAccessChecks",
		"--unsafely-treat-insecure-origin-as-secure=http://10.78.0.1:8080")
	c := &extendedChromium{browser: b}
	b.page = ""
	var loaded struct{ ID string }
	b.call("Extensions.loadUnpacked", map[string]any{"path": dir}, &loaded)
	home := "chrome-extension://" + loaded.ID + "/"
	worker := c.attach(func(kind, url string) bool { return kind == "service_worker" && strings.HasPrefix(url, home) })
	b.page, c.worker = worker, worker
	b.call("Runtime.enable", map[string]any{}, nil)
	c.options = c.attach(func(_, url string) bool { return url == home+"options.html" })
	c.web = b.tab("about:blank")
	return c
}

// attach waits for a page and returns its session.
func (c *extendedChromium) attach(is func(kind, url string) bool) (session string) {
	c.Helper()
	c.page = ""
	c.until("the page is there", func() bool {
		var targets struct {
			All []struct{ Type, URL, TargetID string } `json:"targetInfos"`
		}
		c.call("Target.getTargets", map[string]any{}, &targets)
		for _, target := range targets.All {
			if is(target.Type, target.URL) {
				var attached struct {
					ID string `json:"sessionId"`
				}
				c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
				session = attached.ID
			}
		}
		return session != ""
	})
	return session
}

func (c *extendedChromium) turn(web bool) {
	c.page = c.options
	if web {
		c.page = c.web
	}
}

func (c *extendedChromium) visit(url string) {
	c.Helper()
	c.call("Page.navigate", map[string]any{"url": url}, nil)
}

func (c *extendedChromium) eval(expression string) string {
	c.Helper()
	var value struct {
		Result struct {
			Value string `json:"value"`
		} `json:"result"`
		Exception any `json:"exceptionDetails"`
	}
	// Some calls of the extension are allowed only in response to a user's click.
	c.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "userGesture": true}, &value)
	if value.Exception != nil {
		c.Fatalf("%s: %v", expression, value.Exception)
	}
	return value.Result.Value
}

// menu tells the worker about the choice, since a headless browser does not show menus.
func (c *extendedChromium) menu(selector string) {
	c.Helper()
	url := c.eval(fmt.Sprintf(`document.querySelector(%q).href`, selector))
	page := c.page
	c.page = c.worker
	c.eval(run(fmt.Sprintf(`chrome.contextMenus.onClicked.dispatch({ menuItemId: "download", linkUrl: %q })`, url)))
	c.page = page
}

func (c *extendedChromium) press(selector string) {
	c.Helper()
	c.eval(run(fmt.Sprintf(`document.querySelector(%q).click()`, selector)))
}

func (c *extendedChromium) fill(cookies []cookie) int {
	c.Helper()
	set := make([]map[string]any, 0, len(cookies))
	for _, k := range cookies {
		set = append(set, map[string]any{"name": k.name, "value": k.value, "domain": k.host, "path": "/"})
	}
	page := c.page
	c.page = ""
	c.call("Storage.setCookies", map[string]any{"cookies": set}, nil)
	var has struct{ Cookies []struct{} }
	c.call("Storage.getCookies", map[string]any{}, &has)
	c.page = page
	return len(has.Cookies)
}
