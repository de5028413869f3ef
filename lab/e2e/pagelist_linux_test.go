package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestPageList: in the live page, a user adds, watches, pauses, orders, removes and clears downloads, but only in the window that a
// code from the terminal has opened; the list is there after a restart.
func TestPageList(t *testing.T) {
	t.Run("Chromium", func(t *testing.T) {
		need(t, "chromium", "chromium")
		pageList(t, chromium)
	})
	t.Run("Firefox", func(t *testing.T) {
		if !matrix() {
			t.Skip("it takes minutes: make matrix")
		}
		need(t, "firefox-esr", "firefox-esr")
		pageList(t, firefox)
	})
}

// pageLink returns the address that the program names for the live page, and its origin.
func (r *rig) pageLink() (link, origin string) {
	r.Helper()
	link = strings.TrimSpace(string(r.ok(r.tributary("rpc", "page")).body))
	origin, _, ok := strings.Cut(link, "/#")
	if !ok {
		r.Fatalf("rpc page: %q", link)
	}
	return link, origin
}

func pageList(t *testing.T, open func(*rig, string) surfer) {
	r, folder := startRPC(t, quick())
	r.stopped = true // more than once
	o := r.object(20_000_000)
	goOn := make(chan struct{})
	// /held/NAME stops halfway until goOn is closed.
	mux := http.NewServeMux()
	mux.Handle("/held/{name}", r.halfway(o, goOn))
	order, err := json.Marshal(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"aria2.addUri","params":["token:%s",["%s"]]}`, r.rpcToken(), o.URL))
	if err != nil {
		t.Fatal(err)
	}
	origin := ""
	mux.HandleFunc("/hostile", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, hostileHTML, order, origin+"/jsonrpc")
	})
	site := r.serveHTTP(8080, mux)
	dir, err := filepath.Abs("../../extension")
	if err != nil {
		t.Fatal(err)
	}
	e := &extended{rig: r, surfer: open(r, dir)}
	e.turn(true)

	// Where the page is merely opened, it says which command to type.
	closed := `document.getElementById("list-open")?.checkVisibility() == false && document.getElementById("list-closed").innerText.includes("tributary rpc page")`
	e.visit("http://" + netlab.AdminAddr + "/")
	e.sees("the command", `document.getElementById("connection")?.textContent == "Live" && `+closed)
	link, origin := r.pageLink()
	e.visit(origin + "/")
	e.sees("the command, without a code", closed)
	e.visit(site + "/hostile")
	e.sees("a page of another site has read nothing", `document.title == "done" && document.body.innerText.includes("read: .")`)
	if active, stopped := r.globalStat(); active != "0" || stopped != "0" {
		t.Errorf("R260 another site ordered downloads: %s run, %s have ended", active, stopped)
	}

	ready := `document.getElementById("list-open")?.checkVisibility() === true && !location.hash`
	e.visit(link)
	e.sees("the list", ready+` && document.getElementById("list-empty").checkVisibility()`)
	add := func(url string) {
		t.Helper()
		e.eval(run(fmt.Sprintf(`document.getElementById("url").value = %q`, url)))
		e.press("#add button")
		e.sees("it is added", fmt.Sprintf(`document.getElementById("said").textContent == %q && document.getElementById("url").value == ""`, url+" is added."))
	}
	// row is an expression for the row of a file, and press presses a button in it.
	row := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#list > li, #finished > li")].find(l => l.querySelector("h4").textContent.endsWith(%q))`, name)
	}
	shows := func(name, text string) {
		t.Helper()
		e.sees(name+": "+text, row(name)+fmt.Sprintf(`?.innerText.replaceAll("\n", " ").includes(%q)`, text))
	}
	press := func(name, label string) {
		t.Helper()
		selector := fmt.Sprintf(`button[aria-label$="%s"][aria-label^="%s"]`, name, label)
		e.eval(run(fmt.Sprintf(`document.querySelector(%q).focus()`, selector)))
		e.press(selector)
	}
	listed := func(names ...string) {
		t.Helper()
		want, _ := json.Marshal(names)
		e.sees(fmt.Sprint(names), fmt.Sprintf(`JSON.stringify([...document.querySelectorAll("#list h4")].map(h => h.textContent.split("/").pop())) == '%s'`, want))
	}
	for _, name := range []string{"a.bin", "b.bin", "c.bin", "d.bin"} { // as many as run together
		add(site + "/held/" + name)
	}
	add(site + "/held/e.bin")
	add(site + "/held/f.bin")
	e.sees("its progress", `/running ?[1-9][0-9]* % ?[0-9.]+ MB of 20 MB/.test(`+row("a.bin")+`?.innerText.replaceAll("\n", " ")) && `+row("a.bin")+`.querySelector("progress").value > 2e5`)
	listed("a.bin", "b.bin", "c.bin", "d.bin", "e.bin", "f.bin")
	press("f.bin", "Up")
	listed("a.bin", "b.bin", "c.bin", "d.bin", "f.bin", "e.bin")
	e.sees("the button has the focus still", `document.activeElement.getAttribute("aria-label")?.startsWith("Up: ")`)
	press("f.bin", "Down")
	listed("a.bin", "b.bin", "c.bin", "d.bin", "e.bin", "f.bin")
	press("e.bin", "Pause")
	shows("e.bin", "paused")
	press("a.bin", "Pause")
	shows("a.bin", "paused")
	shows("f.bin", "running")
	press("b.bin", "Remove")
	shows("b.bin", "removed")
	add(site + "/none.bin")
	shows("none.bin", "failed")
	shows("none.bin", "404")
	press("b.bin", "Clear")
	e.sees("b.bin is gone", "!"+row("b.bin"))
	if b, ok := e.surfer.(*extendedChromium); ok {
		b.size(1280, 1000, false)
		b.picture("list-light", false)
		b.size(360, 800, true)
		b.picture("list-phone", true)
	}

	// A reload keeps control; a second window takes it.
	e.visit(origin + "/")
	e.sees("the list after a reload", ready)
	shows("a.bin", "paused")
	second, _ := r.pageLink()
	var token struct{ Result struct{ Token string } }
	_, code, _ := strings.Cut(second, "#")
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tributary.pair","params":[%q]}`, code)
	if err := json.Unmarshal(r.ok(r.client("curl", "-sS", "-H", "Origin: "+origin, "-d", text, origin+"/jsonrpc")).body, &token); err != nil || token.Result.Token == "" {
		t.Fatalf("%+v %v", token, err)
	}
	e.sees("another window has control", closed+` && document.getElementById("list-closed").innerText.includes("Another window took control")`)
	link, _ = r.pageLink()
	e.visit(link)
	e.sees("the list again", ready)
	if c := r.asNobody("curl", "-sS", "-m", "3", origin+"/"); strings.Contains(string(c.body), "<") || len(c.body) == 0 {
		t.Errorf("R260 another user sees %q", c.body)
	}

	r.kill()
	e.sees("its end", closed+` && document.getElementById("list-closed").innerText.includes("has ended")`)
	r.serveRPC()
	link, later := r.pageLink()
	if later == origin {
		t.Errorf("R260 the address of a second start is that of the first: %s", later)
	}
	e.visit(link)
	e.sees("the list after a restart", ready)
	shows("a.bin", "paused")
	shows("e.bin", "paused")
	shows("none.bin", "failed")
	close(goOn)
	press("a.bin", "Resume")
	shows("a.bin", "complete")
	shows("f.bin", "complete")
	r.isObject(r.read(filepath.Join(folder, "a.bin")), o)
	r.isObject(r.read(filepath.Join(folder, "f.bin")), o)
	e.press("#clear")
	e.sees("nothing that has finished", `!document.getElementById("finished-part").checkVisibility() && document.querySelectorAll("#finished > li").length == 0`)
	listed("e.bin")
}
