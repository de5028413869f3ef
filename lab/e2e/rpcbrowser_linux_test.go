package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// explorerVariable names the variable with the folder of the unpacked extension Aria2-Explorer. No package registry has
// it, so it is not fetched.
const explorerVariable = "TRIBUTARY_ARIA2_EXPLORER"

// hostileHTML is a page that knows the token, tries everything to order downloads, and shows what it could read.
const hostileHTML = `<!DOCTYPE html><title>trying</title><script>
const call = %s, at = %q, read = [];
const got = what => text => { if (text && text.includes("jsonrpc")) read.push(what); };
window.stolen = a => read.push("JSONP");
onload = async () => {
	for (const init of [
		{method: "POST", body: call, mode: "no-cors"}, {method: "POST", body: call},
		{method: "POST", body: call, headers: {"Content-Type": "application/json"}}, {method: "POST", body: call, credentials: "include"},
	]) await fetch(at, init).then(r => r.text()).then(got("fetch"), () => {});
	const query = "?method=aria2.addUri&id=1&params=" + encodeURIComponent(btoa(JSON.stringify(JSON.parse(call).params)));
	await fetch(at + query).then(r => r.text()).then(got("GET"), () => {});
	await new Promise(done => {
		const s = new WebSocket(at.replace("http", "ws"));
		s.onopen = () => { read.push("socket"); s.send(call); };
		s.onmessage = m => { got("message")(m.data); done(); };
		s.onclose = done;
	});
	for (const [name, url] of [["script", at + query + "&jsoncallback=stolen"], ["img", at + query], ["iframe", at + query]]) {
		await new Promise(done => {
			const e = document.createElement(name);
			e.onload = e.onerror = done;
			e.src = url;
			document.body.append(e);
		});
	}
	await new Promise(done => {
		const frame = document.createElement("iframe"), form = document.createElement("form"), field = document.createElement("input");
		frame.name = "sent";
		form.target = "sent"; form.method = "POST"; form.action = at; form.enctype = "text/plain";
		field.name = call.slice(0, -1) + ',"x":"'; field.value = '"}';
		form.append(field);
		document.body.append(frame, form);
		frame.onload = done;
		form.submit();
	});
	document.body.append("read: " + read.join(", ") + ".");
	document.title = "done";
};
</script><body></body>`

// TestRPCBrowser: pages can neither order nor read anything, whatever they try; an extension made for aria2 works.
func TestRPCBrowser(t *testing.T) {
	need(t, "chromium", "chromium")
	r, _ := startRPC(t, quick())
	o := r.object(2_000_000)
	order, err := json.Marshal(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"aria2.addUri","params":["token:%s",["%s"]]}`, r.rpcToken(), o.URL))
	if err != nil {
		t.Fatal(err)
	}
	site := r.serveHTTP(8080, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, hostileHTML, order, rpcURL)
	}))
	// Newer browsers also ask the user first when a page calls this machine; this test must not depend on that.
	b := openBrowser(r, "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessRespectPreflightResults",
		"--host-resolver-rules=MAP rebound.example 127.0.0.1")
	if html := b.load(site); !strings.Contains(html, "read: .") {
		t.Errorf("the page shows %s", html)
	}
	if shown := b.text("rebound.example:6800", "/jsonrpc"); !strings.Contains(shown, "The Host field does not name this server") {
		t.Errorf("a name that leads here: %q", shown)
	}
	if active, stopped := r.globalStat(); active != "0" || stopped != "0" {
		t.Errorf("the page ordered downloads: %s run, %s have ended", active, stopped)
	}
	t.Run("Aria2-Explorer and AriaNg", func(t *testing.T) { r.on(t).ariaNg() })
}

// ariaNg drives AriaNg as part of the extension Aria2-Explorer.
func (r *rig) ariaNg() {
	dir := os.Getenv(explorerVariable)
	if dir == "" {
		r.Skip(explorerVariable + " names no copy of the extension")
	}
	big, small := r.object(30_000_000), r.object(1_500_000)
	b := openBrowser(r, "--load-extension="+dir, "--disable-extensions-except="+dir, "--disable-features=DisableLoadExtensionCommandLineSwitch")
	id := ""
	b.until("the extension runs", func() bool {
		var targets struct {
			All []struct{ URL string } `json:"targetInfos"`
		}
		page := b.page
		b.page = ""
		b.call("Target.getTargets", map[string]any{}, &targets)
		b.page = page
		for _, target := range targets.All {
			if rest, ok := strings.CutPrefix(target.URL, "chrome-extension://"); ok {
				id, _, _ = strings.Cut(rest, "/")
			}
		}
		return id != ""
	})
	page := "chrome-extension://" + id + "/ui/ariang/index.html"
	quiet := b.tab("chrome-extension://" + id + "/manifest.json") // a page of the extension that does nothing
	secret := base64.StdEncoding.EncodeToString([]byte(r.rpcToken()))
	b.tab(page + "#!/settings/rpc/set/ws/127.0.0.1/6800/jsonrpc/" + base64.URLEncoding.EncodeToString([]byte(r.rpcToken())))
	b.page = quiet
	b.shows("AriaNg has the secret", fmt.Sprintf(`(localStorage.getItem("AriaNg.Options") ?? "").includes(%q)`, secret))
	b.tab(page + "#!/downloading")
	b.shows("it is connected", `document.body.innerText.includes("Connected")`)
	// task runs a function of AriaNg's download service.
	task := func(call string) {
		r.Helper()
		b.call("Runtime.evaluate", map[string]any{"expression": `angular.element(document.body).injector().get("aria2TaskService").` + call}, nil)
	}
	row := func(what, condition string) {
		r.Helper()
		b.shows(what, `(() => { const text = document.querySelector(".task-table")?.innerText ?? ""; return `+condition+`; })()`)
	}
	list := func(name string) {
		r.Helper()
		b.call("Runtime.evaluate", map[string]any{"expression": `location.hash = "#!/` + name + `"`}, nil)
	}
	var gids []struct{ GID string }
	task(fmt.Sprintf(`newUriTask({urls: [%q], options: {out: "big.bin"}}, false, () => {})`, big.URL))
	row("progress of what it added", `text.includes("big.bin") && /[1-9][0-9.]*%/.test(text)`)
	r.rpcCall(&gids, "aria2.tellActive")
	if len(gids) != 1 {
		r.Fatalf("%v", gids)
	}
	gid := gids[0].GID
	list("waiting")
	task(fmt.Sprintf(`pauseTasks([%q], () => {})`, gid))
	row("it is paused", `text.includes("big.bin")`)
	task(fmt.Sprintf(`startTasks([%q], () => {})`, gid))
	list("downloading")
	row("it goes on", `text.includes("big.bin")`)
	task(fmt.Sprintf(`removeTasks([{gid: %q, status: "active"}], () => {})`, gid))
	task(fmt.Sprintf(`newUriTask({urls: [%q], options: {out: "small.bin"}}, false, () => {})`, small.URL))
	task(fmt.Sprintf(`newUriTask({urls: [%q], options: {}}, false, () => {})`, small.URL+"-none"))
	list("stopped")
	row("what is complete, and what has failed", `text.includes("small.bin") && /error|404|found/i.test(text)`)
	r.isObject(r.read(filepath.Join(r.lab.Dir, "downloads", "small.bin")), small)
}

// tab opens another page and turns to it.
func (b *browser) tab(url string) (session string) {
	b.Helper()
	b.page = ""
	var target struct {
		ID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": url}, &target)
	var attached struct {
		ID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached)
	b.page = attached.ID
	return b.page
}
