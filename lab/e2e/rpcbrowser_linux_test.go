package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

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

// TestRPCBrowser: pages order nothing and read nothing, whatever they try.
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
	// Newer browsers also ask the user first when a page calls this machine: what is tried here must not depend on that.
	b := openBrowser(r, "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessRespectPreflightResults",
		"--host-resolver-rules=MAP rebound.example 127.0.0.1")
	if html := b.load(site); !strings.Contains(html, "read: .") {
		t.Errorf("the page shows %s", html)
	}
	if shown := b.text("rebound.example:6800", "/jsonrpc"); !strings.Contains(shown, "Host is not the address of this port") {
		t.Errorf("a name that leads here: %q", shown)
	}
	if active, stopped := r.globalStat(); active != "0" || stopped != "0" {
		t.Errorf("the page ordered downloads: %s run, %s have ended", active, stopped)
	}
}
