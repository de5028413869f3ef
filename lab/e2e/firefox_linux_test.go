package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firefoxPrefs are settings of a profile: downloads are saved without a question, an extension gets the permissions that
// it requests in a click, no cookie is forgotten, and nothing is sent to Mozilla.
const firefoxPrefs = `
user_pref("browser.download.folderList", 2);
user_pref("browser.download.dir", %q);
user_pref("browser.download.always_ask_before_handling_new_types", false);
user_pref("browser.download.alwaysOpenPanel", false);
user_pref("extensions.webextOptionalPermissionPrompts", false);
user_pref("network.cookie.maxNumber", 20000);
user_pref("app.update.auto", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
user_pref("toolkit.telemetry.server", "data:,");
`

// extendedFirefox is Firefox, driven by the Marionette protocol: JSON messages, each preceded by its length and a colon.
type extendedFirefox struct {
	*rig
	conn         net.Conn
	messages     *bufio.Reader
	last         int    // number of the last command
	options, web string // handles of tabs
}

// firefox starts Firefox with our extension. It is killed at the test's end.
func firefox(r *rig, dir string) surfer {
	r.Helper()
	home := filepath.Dir(r.file())
	r.write(filepath.Join(home, "user.js"), fmt.Appendf(nil, firefoxPrefs, filepath.Join(home, "Downloads")))
	ctx, cancel := context.WithCancel(r.ctx)
	cmd := r.lab.Client(ctx, "firefox-esr", "--headless", "--no-remote", "--profile", home, "--marionette", "--remote-allow-system-access")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+home)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		cancel()
		_ = cmd.Wait() // it was killed, so its exit status means nothing
		if r.Failed() {
			r.Logf("firefox said:\n%s", said.Bytes()[:min(said.Len(), 4000)])
		}
	})
	const port = "127.0.0.1:2828"
	if err := r.lab.WaitForClient(r.ctx, port); err != nil {
		r.Fatal(err)
	}
	conn, err := r.lab.DialContext(r.ctx, "tcp", port)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	f := &extendedFirefox{rig: r, conn: conn, messages: bufio.NewReader(conn)}
	if deadline, ok := r.ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			r.Fatal(err)
		}
	}
	f.next() // Firefox sends a greeting
	hour := 3_600_000
	f.call("WebDriver:NewSession", map[string]any{
		"pageLoadStrategy": "none", // a download loads no page
		"timeouts":         map[string]int{"script": hour, "pageLoad": hour},
	}, nil)
	f.call("Addon:Install", map[string]any{"path": dir, "temporary": true}, nil)
	f.until("the options are shown", func() bool {
		var tabs []string
		f.call("WebDriver:GetWindowHandles", nil, &tabs)
		for _, tab := range tabs {
			f.call("WebDriver:SwitchToWindow", map[string]any{"handle": tab}, nil)
			var url string
			f.call("WebDriver:GetCurrentURL", nil, &url)
			if strings.HasPrefix(url, "moz-extension:") {
				f.options = tab
			}
		}
		return f.options != ""
	})
	// Firefox may have opened the options page in its initial tab.
	var opened struct{ Handle string }
	f.call("WebDriver:NewWindow", map[string]any{"type": "tab"}, &opened)
	f.web = opened.Handle
	return f
}

// next reads a message.
func (f *extendedFirefox) next() []byte {
	f.Helper()
	length, err := f.messages.ReadString(':')
	if err != nil {
		f.Fatalf("firefox: %v", err)
	}
	n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
	if err != nil {
		f.Fatalf("firefox: %v", err)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(f.messages, text); err != nil {
		f.Fatalf("firefox: %v", err)
	}
	return text
}

// call sends a command, and decodes its value into res unless nil.
func (f *extendedFirefox) call(command string, params map[string]any, res any) {
	f.Helper()
	if params == nil {
		params = map[string]any{}
	}
	f.last++
	text, err := json.Marshal([]any{0, f.last, command, params})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := fmt.Fprintf(f.conn, "%d:%s", len(text), text); err != nil {
		f.Fatalf("firefox: %s: %v", command, err)
	}
	var failed *struct{ Error, Message string }
	var result json.RawMessage
	answer := f.next()
	if err := json.Unmarshal(answer, &[]any{new(int), new(int), &failed, &result}); err != nil {
		f.Fatalf("firefox: %s: %v in %s", command, err, answer)
	}
	if failed != nil {
		f.Fatalf("firefox: %s %v: %s: %s", command, params, failed.Error, failed.Message)
	}
	if res == nil {
		return
	}
	var wrapped struct{ Value json.RawMessage }
	if json.Unmarshal(result, &wrapped) == nil && wrapped.Value != nil {
		result = wrapped.Value
	}
	if err := json.Unmarshal(result, res); err != nil {
		f.Fatalf("firefox: %s: %v in %s", command, err, answer)
	}
}

func (f *extendedFirefox) turn(web bool) {
	f.Helper()
	tab := f.options
	if web {
		tab = f.web
	}
	f.call("WebDriver:SwitchToWindow", map[string]any{"handle": tab, "focus": true}, nil)
}

func (f *extendedFirefox) visit(url string) {
	f.Helper()
	f.call("WebDriver:Navigate", map[string]any{"url": url}, nil)
}

func (f *extendedFirefox) eval(expression string) (value string) {
	f.Helper()
	f.call("WebDriver:ExecuteScript", map[string]any{"script": "return (" + expression + ")", "args": []any{}}, &value)
	return value
}

func (f *extendedFirefox) press(selector string) {
	f.Helper()
	var element map[string]string
	f.call("WebDriver:FindElement", map[string]any{"using": "css selector", "value": selector}, &element)
	for _, id := range element {
		f.call("WebDriver:ElementClick", map[string]any{"id": id}, nil)
	}
}

func (f *extendedFirefox) fill(cookies []cookie) (has int) {
	f.Helper()
	set := make([][3]string, 0, len(cookies))
	for _, k := range cookies {
		set = append(set, [3]string{k.host, k.name, k.value})
	}
	f.call("Marionette:SetContext", map[string]any{"value": "chrome"}, nil)
	f.call("WebDriver:ExecuteScript", map[string]any{"args": []any{set}, "script": `
		for (const [host, name, value] of arguments[0]) {
			Services.cookies.add(host, "/", name, value, false, false, true, Date.now() + 1e9, {}, Ci.nsICookie.SAMESITE_LAX, Ci.nsICookie.SCHEME_HTTP);
		}
		// Firefox ends the extension's script when it has been idle for long: it must start again for the download.
		const { extension } = WebExtensionPolicy.getByID("extension@tributary-http.github.io");
		return extension.terminateBackground().then(() => Services.cookies.cookies.length);`}, &has)
	f.call("Marionette:SetContext", map[string]any{"value": "content"}, nil)
	return has
}

func (f *extendedFirefox) menu(selector string) {
	f.Helper()
	var element map[string]string
	f.call("WebDriver:FindElement", map[string]any{"using": "css selector", "value": selector}, &element)
	f.call("WebDriver:PerformActions", map[string]any{"actions": []any{map[string]any{
		"type": "pointer", "id": "mouse", "actions": []any{
			map[string]any{"type": "pointerMove", "x": 0, "y": 0, "origin": element},
			map[string]any{"type": "pointerDown", "button": 2},
			map[string]any{"type": "pointerUp", "button": 2},
		},
	}}}, nil)
	f.call("Marionette:SetContext", map[string]any{"value": "chrome"}, nil)
	f.until("the menu has it", func() bool {
		return f.eval(`(() => {
			const menu = document.getElementById("contentAreaContextMenu");
			const item = menu.state == "open" && [...menu.querySelectorAll("menuitem")].find(i => i.label == "Download with Tributary");
			if (item) menu.activateItem(item);
			return item ? "yes" : "";
		})()`) == "yes"
	})
	f.call("Marionette:SetContext", map[string]any{"value": "content"}, nil)
}
