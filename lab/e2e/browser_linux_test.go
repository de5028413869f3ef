package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// browser is a headless Chromium that is driven by the DevTools protocol over a pipe: JSON messages that end in NUL.
type browser struct {
	*rig
	commands io.WriteCloser
	messages *bufio.Reader
	last     int            // id of the last command
	events   map[string]int // how often a download's state was reported
	page     string         // session of the only page
	console  []string       // output of pages to their consoles, if they are watched (Runtime.enable)
}

// message is an answer (it has the command's ID) or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// openBrowser starts Chromium with one empty page. It is killed at the test's end.
func openBrowser(r *rig, args ...string) *browser {
	r.Helper()
	theirCommands, commands, err := os.Pipe()
	if err != nil {
		r.Fatal(err)
	}
	messages, theirMessages, err := os.Pipe()
	if err != nil {
		r.Fatal(err)
	}
	dir := filepath.Dir(r.file())
	ctx, cancel := context.WithCancel(r.ctx)
	cmd := r.lab.Client(ctx, "chromium", append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir=" + dir, "--remote-debugging-pipe",
	}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
	cmd.ExtraFiles = []*os.File{theirCommands, theirMessages} // 3 and 4, the descriptors that the option above expects
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	theirCommands.Close()
	theirMessages.Close()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		commands.Close()
		messages.Close()
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		cancel()
		_ = cmd.Wait() // it was killed, so its exit status means nothing
		if r.Failed() {
			r.Logf("chromium said:\n%s", said.Bytes()[:min(said.Len(), 4000)])
		}
	})
	b := &browser{rig: r, commands: commands, messages: bufio.NewReader(messages), events: map[string]int{}}
	r.Cleanup(func() {
		if r.Failed() && len(b.console) > 0 {
			r.Logf("the consoles:\n%s", strings.Join(b.console, "\n"))
		}
	})
	var target struct {
		ID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct {
		ID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session)
	b.page = session.ID
	return b
}

// call sends a command to the page, or to the browser before there is one, and decodes its result into res unless nil.
func (b *browser) call(method string, params map[string]any, res any) {
	b.Helper()
	b.last++
	command := map[string]any{"id": b.last, "method": method, "params": params}
	if b.page != "" && !strings.HasPrefix(method, "Browser.") {
		command["sessionId"] = b.page
	}
	text, err := json.Marshal(command)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.commands.Write(append(text, 0)); err != nil {
		b.Fatalf("chromium: %s: %v", method, err)
	}
	for {
		m := b.next()
		switch {
		case m.ID != b.last:
			continue
		case m.Error != nil:
			b.Fatalf("chromium: %s: %s", method, m.Error.Message)
		case res != nil:
			if err := json.Unmarshal(m.Result, res); err != nil {
				b.Fatalf("chromium: %s: %v in %s", method, err, m.Result)
			}
		}
		return
	}
}

// next reads a message and counts its reports about downloads.
func (b *browser) next() message {
	b.Helper()
	text, err := b.messages.ReadBytes(0)
	var m message
	if err == nil {
		err = json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m)
	}
	if err != nil {
		b.Fatalf("chromium: %v", errors.Join(err, b.ctx.Err()))
	}
	if m.Method == "Runtime.consoleAPICalled" || m.Method == "Runtime.exceptionThrown" {
		b.console = append(b.console, string(m.Params[:min(len(m.Params), 600)]))
	}
	if m.Method == "Browser.downloadProgress" {
		var progress struct {
			State string `json:"state"`
		}
		if err := json.Unmarshal(m.Params, &progress); err != nil {
			b.Fatal(err)
		}
		b.events[progress.State]++
	}
	return m
}

// load opens a page and returns its HTML once its script reports by the title that it is done.
func (b *browser) load(url string) (html string) {
	b.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.until("the page is loaded", func() bool {
		var value struct {
			Result struct {
				Value string `json:"value"`
			} `json:"result"`
		}
		b.call("Runtime.evaluate", map[string]any{
			"expression": `document.title == "done" ? document.documentElement.outerHTML : ""`,
		}, &value)
		html = value.Result.Value
		return html != ""
	})
	return html
}

// text opens a page of an http host and returns the text that it shows.
func (b *browser) text(host, path string) (shown string) {
	b.Helper()
	b.call("Page.navigate", map[string]any{"url": "http://" + host + path}, nil)
	b.until("a page is shown", func() bool {
		var value struct {
			Result struct {
				Value string `json:"value"`
			} `json:"result"`
		}
		b.call("Runtime.evaluate", map[string]any{"expression": `location.host == "` + host + `" ? document.body.innerText : ""`}, &value)
		shown = value.Result.Value
		return shown != ""
	})
	return shown
}

// download saves the object of a URL and returns it.
func (b *browser) download(url string) []byte {
	b.Helper()
	dir := filepath.Dir(b.file())
	b.call("Browser.setDownloadBehavior", map[string]any{
		"behavior": "allow", "downloadPath": dir, "eventsEnabled": true,
	}, nil)
	before := b.events["completed"]
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	for b.events["completed"] == before {
		if b.events["canceled"] > 0 {
			b.Fatalf("chromium: the download was broken off")
		}
		b.next()
	}
	return b.read(filepath.Join(dir, url[strings.LastIndexByte(url, '/')+1:]))
}

const (
	pageHTML = `<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="stylesheet" href="style.css"></head>
<body><p id="text">text</p><img src="1.svg"><img src="2.svg"><p id="sum"></p><script src="sum.js"></script></body></html>
`
	pageCSS = `#text { color: rgb(1, 2, 3) }`
	// pageJS shows what was loaded: the style, the images' widths and the FNV-1a hash of an object.
	pageJS = `
onload = async () => {
	const bytes = new Uint8Array(await (await fetch("/2MB")).arrayBuffer());
	let hash = 0x811c9dc5;
	for (const b of bytes) hash = Math.imul(hash ^ b, 0x01000193) >>> 0;
	const widths = Array.from(document.images, (i) => i.naturalWidth);
	document.getElementById("sum").textContent =
		[getComputedStyle(document.getElementById("text")).color, widths, bytes.length, hash].join(" ");
	document.title = "done";
};
`
	pageSVG = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="9"><rect width="9" height="9"/></svg>`
)

// TestBrowser loads a page with a browser, and downloads a file.
func TestBrowser(t *testing.T) {
	need(t, "chromium", "chromium")
	r := newRig(t, quick(), netlab.NginxOptions{
		Directives: "types { text/html html; text/css css; text/javascript js; image/svg+xml svg; }",
	})
	r.serve()
	page := filepath.Join(r.nginx.Root(), "page")
	if err := os.Mkdir(page, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"index.html": pageHTML, "style.css": pageCSS, "sum.js": pageJS,
		"1.svg": fmt.Sprintf(pageSVG, 11), "2.svg": fmt.Sprintf(pageSVG, 22),
	} {
		r.write(filepath.Join(page, name), []byte(text))
	}
	object, file := r.object(2_000_000), r.object(5_000_000)
	hash := fnv.New32a()
	_, _ = hash.Write(r.content(object.Size))
	want := fmt.Sprintf(`<p id="sum">rgb(1, 2, 3) 11,22 2000000 %d</p>`, hash.Sum32())
	url := strings.TrimSuffix(r.nginx.NamedURL(object), object.Size.String()) + "page/index.html"

	direct := openBrowser(r).load(url)
	b := openBrowser(r, "--proxy-server="+proxyURL)
	r.overBoth(func() {
		began := time.Now()
		if html := b.load(url); html != direct || !strings.Contains(html, want) {
			t.Errorf("through the proxy\n%s\n\ndirectly\n%s\n\nwant %s", html, direct, want)
		}
		t.Logf("page loaded in %s", time.Since(began))
	})
	r.overBoth(func() { r.isObject(b.download(r.nginx.NamedURL(file)), file) })
}
