package rpc

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// GIDs of the downloads of these tests, which aria2 lets clients choose.
const (
	first  = "1000000000000001"
	second = "2000000000000002"
	third  = "3000000000000003"
	fourth = "4000000000000004"
)

// documented are the methods in aria2c(1), RPC INTERFACE, and whether they are supported here.
var documented = map[string]bool{
	"aria2.addUri": true, "aria2.addTorrent": false, "aria2.addMetalink": false, "aria2.remove": true, "aria2.forceRemove": true,
	"aria2.pause": true, "aria2.pauseAll": true, "aria2.forcePause": true, "aria2.forcePauseAll": true, "aria2.unpause": true,
	"aria2.unpauseAll": true, "aria2.tellStatus": true, "aria2.getUris": true, "aria2.getFiles": true, "aria2.getPeers": true,
	"aria2.getServers": true, "aria2.tellActive": true, "aria2.tellWaiting": true, "aria2.tellStopped": true,
	"aria2.changePosition": true, "aria2.changeUri": false, "aria2.getOption": true, "aria2.changeOption": true,
	"aria2.getGlobalOption": true, "aria2.changeGlobalOption": true, "aria2.getGlobalStat": true,
	"aria2.purgeDownloadResult": true, "aria2.removeDownloadResult": true, "aria2.getVersion": true,
	"aria2.getSessionInfo": true, "aria2.shutdown": false, "aria2.forceShutdown": false, "aria2.saveSession": true,
	"system.multicall": true, "system.listMethods": true, "system.listNotifications": true,
}

// TestDocumentedMethods: each method of aria2 is supported, or returns aria2's own error code.
func TestDocumentedMethods(t *testing.T) {
	s := start(t, nil)
	var supported []any
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if documented[name] {
			supported = append(supported, name)
			continue
		}
		status, answer := s.post(request(t, name))
		want := map[string]any{
			"id": "1", "jsonrpc": "2.0", "error": map[string]any{"code": 1.0, "message": name + " is not supported by Tributary."},
		}
		if status != http.StatusBadRequest || !reflect.DeepEqual(answer, want) {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	got, _ := s.call("system.listMethods").([]any)
	slices.SortFunc(got, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	if !reflect.DeepEqual(got, supported) {
		t.Errorf("listMethods: %v", got)
	}
}

// startAria2 starts a real aria2c.
func startAria2(t *testing.T) *server {
	t.Helper()
	program, err := exec.LookPath("aria2c")
	if err != nil {
		t.Skip("aria2c is not installed: apt-get install aria2")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	dir := t.TempDir()
	cmd := exec.Command(program, "--no-conf", "--enable-rpc", fmt.Sprintf("--rpc-listen-port=%d", port), "--rpc-secret="+secret,
		"--dir="+dir, "--save-session="+filepath.Join(t.TempDir(), "session"), "--quiet=true", "--file-allocation=none", "--split=1",
		"--no-proxy=*")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); ; <-tick.C {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("aria2c does not listen")
		}
	}
	return &server{caller: &caller{t, fmt.Sprintf("http://127.0.0.1:%d/jsonrpc", port)}, dir: dir}
}

// step is a call that both servers receive or, with a status, a wait for that status.
type step struct {
	method string
	params []any
	raw    string // sent in place of the request
	gid    string
	status string
}

func call(method string, params ...any) step { return step{method: method, params: params} }

func wait(gid, status string) step { return step{gid: gid, status: status} }

// TestLikeAria2: answers equal those of a real aria2c, except for names, speeds, versions, and the differences in notEqual.
func TestLikeAria2(t *testing.T) {
	real, mine := startAria2(t), start(t, nil)
	o := origin(t)
	file, slow, none := o.URL+"/file", o.URL+"/slow", o.URL+"/none"
	type opts = map[string]any
	steps := []step{
		call("aria2.getVersion"), call("aria2.getSessionInfo"), call("aria2.getGlobalStat"), call("system.listNotifications"),
		call("aria2.tellActive"), call("aria2.tellWaiting", 0, 10), call("aria2.tellStopped", 0, 10),
		call("aria2.getGlobalOption"), call("aria2.saveSession"), call("aria2.nosuch"),
		// Invalid requests.
		{raw: `{`},
		{raw: `[]`},
		{raw: `{"id":1}`},
		{raw: `{"jsonrpc":"2.0","method":"system.listNotifications"}`},
		{raw: `{"jsonrpc":"2.0","id":7,"method":"system.listNotifications"}`},
		{raw: `{"jsonrpc":"2.0","id":7,"method":"aria2.getVersion","params":{}}`},
		{raw: `{"jsonrpc":"2.0","id":"a","method":"aria2.getVersion","params":[]}`},
		{raw: `{"jsonrpc":"2.0","id":"a","method":"nosuch","params":[]}`},
		{raw: `[{"jsonrpc":"2.0","id":7,"method":"aria2.getSessionInfo","params":["token:x"]},{"jsonrpc":"2.0","id":8,"method":"nosuch"}]`},
		call("aria2.addUri"), call("aria2.addUri", file), call("aria2.addUri", []any{}), call("aria2.addUri", []any{5}), call("aria2.addUri", []string{"nothing"}),
		// A waiting download.
		call("aria2.addUri", []string{file}, opts{
			"gid": first, "pause": "true", "out": "a.bin", "header": []string{"X-A: b", "X-C: d"}, "referer": "http://site/", "user-agent": "Browser/1",
		}),
		call("aria2.tellStatus", first), call("aria2.tellStatus", first, []string{"gid", "status", "nosuch"}), call("aria2.tellStatus", first[:6], []string{"gid"}),
		call("aria2.tellStatus"), call("aria2.tellStatus", "zz"), call("aria2.tellStatus", fourth), call("aria2.tellStatus", 5),
		call("aria2.tellWaiting", 0, 10), call("aria2.tellWaiting"), call("aria2.tellWaiting", "a", 1), call("aria2.tellWaiting", 0),
		call("aria2.getUris", first), call("aria2.getFiles", first), call("aria2.getServers", first), call("aria2.getPeers", first), call("aria2.getOption", first),
		call("aria2.getUris", fourth), call("aria2.getFiles", fourth), call("aria2.getServers", fourth), call("aria2.getOption", fourth), call("aria2.changeOption", fourth, opts{}),
		call("aria2.changeOption", first, opts{"out": "b.bin", "header": []string{"X: y"}, "nosuch": "1"}), call("aria2.changeOption", first), call("aria2.getOption", first),
		call("aria2.pause", first), call("aria2.forcePause", first), call("aria2.pause", fourth), call("aria2.unpause", fourth), call("aria2.remove", fourth),
		// The order of the queue.
		call("aria2.addUri", []string{file}, opts{"gid": second, "pause": "true", "out": "second.bin"}, 0),
		call("aria2.addUri", []string{file}, opts{"gid": third, "pause": "true", "out": "third.bin"}),
		call("aria2.tellWaiting", 0, 10, []string{"gid"}), call("aria2.tellWaiting", 1, 1, []string{"gid"}), call("aria2.tellWaiting", -1, 2, []string{"gid"}),
		call("aria2.tellWaiting", -2, 10, []string{"gid"}), call("aria2.tellWaiting", 9, 1, []string{"gid"}), call("aria2.tellWaiting", -9, 1, []string{"gid"}),
		call("aria2.changePosition", first, 0, "POS_SET"), call("aria2.changePosition", first, 1, "POS_CUR"), call("aria2.changePosition", second, -1, "POS_END"),
		call("aria2.changePosition", second, 99, "POS_SET"), call("aria2.changePosition", second, -9, "POS_CUR"), call("aria2.changePosition", second, 0, "POS_NO"),
		call("aria2.changePosition", fourth, 0, "POS_SET"), call("aria2.tellWaiting", 0, 10, []string{"gid"}), call("aria2.getGlobalStat"),
		// Moves to the end.
		call("aria2.unpause", first), wait(first, "complete"), call("aria2.tellStatus", first), call("aria2.unpause", first), call("aria2.pause", first),
		call("aria2.remove", first), call("aria2.getServers", first), call("aria2.getUris", first), call("aria2.getFiles", first),
		call("aria2.changeOption", first, opts{}), call("aria2.changePosition", first, 0, "POS_SET"), call("aria2.getOption", first),
		call("aria2.tellStopped", 0, 10, []string{"gid", "status", "errorCode"}), call("aria2.getGlobalStat"),
		call("aria2.remove", second), call("aria2.tellStatus", second), call("aria2.removeDownloadResult", second),
		call("aria2.removeDownloadResult", third), call("aria2.removeDownloadResult", first), call("aria2.tellStatus", first), call("aria2.forceRemove", third),
		// A running download.
		call("aria2.addUri", []string{slow}, opts{"gid": first, "out": "slow.bin"}), wait(first, "active"), call("aria2.tellActive"), call("aria2.getServers", first),
		call("aria2.getUris", first), call("aria2.changePosition", first, 0, "POS_SET"), call("aria2.removeDownloadResult", first),
		call("aria2.forcePause", first), wait(first, "paused"), call("aria2.tellStatus", first, []string{"status", "totalLength", "files"}), call("aria2.unpauseAll"),
		wait(first, "active"), call("aria2.forcePauseAll"), wait(first, "paused"), call("aria2.unpause", first), wait(first, "active"),
		call("aria2.forceRemove", first), wait(first, "removed"), call("aria2.tellStatus", first, []string{"status", "errorCode", "totalLength"}), call("aria2.unpause", first),
		call("aria2.pauseAll"), call("aria2.purgeDownloadResult"), call("aria2.tellStopped", 0, 10),
		// A failing download.
		call("aria2.addUri", []string{none}, opts{"gid": second}), wait(second, "error"), call("aria2.tellStatus", second), call("aria2.unpause", second), call("aria2.remove", second),
		// Downloads one after the other.
		call("aria2.changeGlobalOption", opts{maxConcurrent: "1"}), call("aria2.changeGlobalOption", opts{maxConcurrent: "x"}), call("aria2.changeGlobalOption", opts{"nosuch": "1"}),
		call("aria2.changeGlobalOption"), call("aria2.getGlobalOption"),
		call("aria2.addUri", []string{slow}, opts{"gid": third, "out": "c"}), wait(third, "active"), call("aria2.addUri", []string{file}, opts{"gid": fourth, "out": "d"}),
		call("aria2.tellWaiting", 0, 10), call("aria2.getGlobalStat"), call("aria2.pause", fourth), call("aria2.forceRemove", third), wait(third, "removed"), call("aria2.unpause", fourth), wait(fourth, "complete"),
		call("aria2.tellStopped", 0, 2, []string{"gid"}), call("aria2.tellStopped", -1, 2, []string{"gid"}),
		// The file already exists.
		call("aria2.addUri", []string{file}, opts{"gid": first, "out": "d"}), wait(first, "complete"), call("aria2.getFiles", first),
		{raw: `{"jsonrpc":"2.0","id":"1","method":"system.multicall","params":[[{"methodName":"aria2.getSessionInfo","params":["token:` + secret + `"]},` +
			`{"methodName":"aria2.getSessionInfo","params":["token:no"]},{"methodName":"aria2.tellStatus","params":["token:` + secret + `","x"]},` +
			`{"methodName":"system.multicall","params":[]},{}]]}`},
		call("system.multicall"), call("system.multicall", 5),
	}
	events := map[*server]*socket{real: real.socket(), mine: mine.socket()}
	events[mine].send(request(t, "system.multicall", []any{map[string]any{"methodName": "aria2.getVersion", "params": []any{"token:" + secret}}}))
	events[mine].read()
	compared := map[string]bool{}
	for _, x := range steps {
		if x.status != "" {
			real.becomes(x.gid, x.status)
			mine.becomes(x.gid, x.status)
			continue
		}
		text := x.raw
		if text == "" {
			text = request(t, x.method, x.params...)
		}
		if compared[x.method] = true; strings.Contains(text, "system.multicall") {
			compared["system.multicall"] = true
		}
		wantStatus, want := real.post(text)
		gotStatus, got := mine.post(text)
		want, got = notEqual(x.method, want, real.dir), notEqual(x.method, got, mine.dir)
		if gotStatus != wantStatus || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %d %v\nwant %d %v", text, gotStatus, got, wantStatus, want)
		}
	}
	delete(compared, "")
	delete(compared, "aria2.nosuch")
	if len(compared) < 25 {
		t.Errorf("%d methods are compared: %v", len(compared), slices.Sorted(maps.Keys(compared)))
	}
	for end := false; !end; {
		want, got := events[real].read(), events[mine].read()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("notified of %v, want %v", got, want)
		}
		end = strings.Contains(fmt.Sprint(want), first) && strings.Contains(fmt.Sprint(want), "Complete") && compared["again"]
		compared["again"] = compared["again"] || strings.Contains(fmt.Sprint(want), fourth)
	}
}

// notEqual removes the parts of an answer that may differ.
func notEqual(method string, answer any, dir string) any {
	switch v := answer.(type) {
	case string:
		return strings.ReplaceAll(v, dir, "DIR")
	case []any:
		var all []any
		for _, x := range v {
			if x == "aria2.onBtDownloadComplete" {
				continue
			}
			x = notEqual(method, x, dir)
			// aria2 lists a URL once for each connection that it might open.
			if !slices.ContainsFunc(all, func(o any) bool {
				return isURI(x) && isURI(o) && x.(map[string]any)["uri"] == o.(map[string]any)["uri"]
			}) {
				all = append(all, x)
			}
		}
		return all
	case map[string]any:
		for k, x := range v {
			v[k] = notEqual(method, x, dir)
		}
		for _, k := range []string{"sessionId", "version", "enabledFeatures", "tributary", "downloadSpeed", "connections", "errorMessage"} {
			if _, ok := v[k]; ok {
				v[k] = nil
			}
		}
		if method == "aria2.getVersion" {
			delete(v, "tributary")
		}
		if v["status"] == "active" || v["status"] == "paused" || v["status"] == "removed" { // the progress differs
			for _, k := range []string{"completedLength", "bitfield"} {
				v[k] = nil
			}
			files, _ := v["files"].([]any)
			for _, f := range files {
				f.(map[string]any)["completedLength"] = nil
			}
		}
		if _, ok := v["auto-file-renaming"]; ok { // options that have a meaning here
			for k := range v {
				if !slices.Contains(append(orderOptions, maxConcurrent, "allow-overwrite", "auto-file-renaming"), k) {
					delete(v, k)
				}
			}
			if agent, _ := v["user-agent"].(string); strings.HasPrefix(agent, "aria2/") || strings.HasPrefix(agent, "tributary/") {
				v["user-agent"] = nil
			}
		}
		return v
	}
	return answer
}

// isURI reports whether a value describes a URL of a download.
func isURI(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["uri"] != nil && m["status"] != nil
}
