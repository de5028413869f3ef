package rpc

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// These tests send the calls of two front ends, in their order, according to their sources (Aria2-Explorer 2.7: js/aria2.js and
// js/background; AriaNg 1.3: aria2RpcService.js and aria2TaskService.js), and check the parts of the answers that they use.

// TestAria2Explorer: the extension watches over a socket, and hands over a download that requires a login.
func TestAria2Explorer(t *testing.T) {
	s, o := start(t, nil), origin(t)
	socket := s.socket()
	socket.send(request(t, "aria2.getGlobalStat"))
	stat, _ := socket.read()["result"].(map[string]any)
	for _, key := range []string{"numActive", "numStopped", "numWaiting", "uploadSpeed", "downloadSpeed"} {
		if stat[key] != "0" {
			t.Errorf("%s: %v", key, stat[key])
		}
	}
	// The download uses fetch, so that the browser asks first.
	if status, h, _ := s.try("OPTIONS", "", "Origin: "+extension, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"); status != 204 ||
		h.Get("Access-Control-Allow-Headers") != "Content-Type" {
		t.Errorf("preflight: %d %v", status, h)
	}
	order := request(t, "aria2.addUri", []string{o.URL + "/login"}, map[string]any{
		"header": []string{"Cookie: session=abc; theme=dark", "User-Agent: Browser/1"}, "referer": "http://site/", "split": "16",
	})
	status, _, body := s.try("POST", order, "Origin: "+extension, "Content-Type: application/json", "Accept: application/json")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var gid any
	for _, want := range []string{"aria2.onDownloadStart", "aria2.onDownloadComplete"} {
		m := socket.read()
		if m["method"] != want {
			t.Fatal(m)
		}
		gid = m["params"].([]any)[0].(map[string]any)["gid"]
	}
	socket.send(request(t, "aria2.getFiles", gid))
	files, _ := socket.read()["result"].([]any)
	want := filepath.Join(s.dir, "private.bin") // the server calls it ../private.bin
	if len(files) != 1 || files[0].(map[string]any)["path"] != want {
		t.Errorf("%v, want %s", files, want)
	}
	if b, err := os.ReadFile(want); err != nil || len(b) != 3_000_000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	// Without the login.
	failed, _ := s.call("aria2.addUri", []string{o.URL + "/login"}, map[string]any{"header": []string{"User-Agent: Browser/1"}}).(string)
	s.becomes(failed, "error")
	if got := s.call("aria2.tellStatus", failed, []string{"errorCode", "errorMessage"}).(map[string]any); got["errorCode"] != "22" ||
		!strings.Contains(got["errorMessage"].(string), "403 Forbidden") {
		t.Error(got)
	}
	for _, want := range []string{"aria2.onDownloadStart", "aria2.onDownloadError"} {
		if m := socket.read(); m["method"] != want {
			t.Error(m)
		}
	}
	// The secret is wrong.
	socket.send(strings.Replace(request(t, "aria2.getGlobalStat"), secret, "another", 1))
	if e, _ := socket.read()["error"].(map[string]any); e["message"] != "Unauthorized" {
		t.Error(e)
	}
}

// TestAriaNg: the front end adds, shows, pauses, resumes and removes downloads.
func TestAriaNg(t *testing.T) {
	s, o := start(t, nil), origin(t)
	full := []string{
		"gid", "totalLength", "completedLength", "uploadSpeed", "downloadSpeed", "connections", "numSeeders", "seeder", "status",
		"errorCode", "verifiedLength", "verifyIntegrityPending", "files", "bittorrent", "infoHash",
	}
	// only returns the one download of a list.
	only := func(list any) map[string]any {
		t.Helper()
		all, _ := list.([]any)
		if len(all) != 1 {
			t.Fatalf("%v", list)
		}
		return all[0].(map[string]any)
	}
	if v := s.call("aria2.getVersion").(map[string]any); v["version"] == "" || v["enabledFeatures"] == nil {
		t.Error(v)
	}
	if g := s.call("aria2.getGlobalOption").(map[string]any); g["dir"] != s.dir || g[maxConcurrent] != "5" {
		t.Error(g)
	}
	gid, _ := s.call("aria2.addUri", []string{o.URL + "/slow"}, map[string]any{"out": "slow.bin", "pause": "true"}).(string)
	waits := only(s.call("aria2.tellWaiting", 0, 1000, full))
	if waits["status"] != "paused" || waits["totalLength"] != "0" {
		t.Error(waits)
	}
	s.call("aria2.unpause", gid)
	s.becomes(gid, "active")
	runs := only(s.call("aria2.tellActive", full))
	if file := only(runs["files"]); runs["totalLength"] != "3000000" || file["path"] != filepath.Join(s.dir, "slow.bin") {
		t.Error(runs)
	}
	page, _ := s.call("system.multicall", []any{
		map[string]any{"methodName": "aria2.tellStatus", "params": []any{"token:" + secret, gid}},
		map[string]any{"methodName": "aria2.getPeers", "params": []any{"token:" + secret, gid}},
	}).([]any)
	if len(page) != 2 || page[0].([]any)[0].(map[string]any)["numPieces"] != "3" || !reflect.DeepEqual(page[1], []any{[]any{}}) {
		t.Error(page)
	}
	s.call("aria2.forcePause", gid)
	s.becomes(gid, "paused")
	if o := s.call("aria2.getOption", gid).(map[string]any); o["out"] != "slow.bin" || o["dir"] != s.dir {
		t.Error(o)
	}
	s.call("aria2.changeOption", gid, map[string]any{"referer": "http://site/"})
	if o := s.call("aria2.getOption", gid).(map[string]any); o["referer"] != "http://site/" {
		t.Error(o)
	}
	s.call("aria2.unpause", gid)
	s.becomes(gid, "active")
	s.call("aria2.forceRemove", gid)
	s.becomes(gid, "removed")
	if over := only(s.call("aria2.tellStopped", -1, 1000, full)); over["gid"] != gid || over["errorCode"] != "31" {
		t.Error(over)
	}
	s.call("aria2.removeDownloadResult", gid)
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("a removed download leaves %v, %v", left, err)
	}
	if g := s.call("aria2.getGlobalStat").(map[string]any); g["numStopped"] != "0" || g["numStoppedTotal"] != "1" {
		t.Error(g)
	}
}

// TestFolder: files are only put into one folder and those below it, under harmless names, and do not replace anything.
func TestFolder(t *testing.T) {
	s, o := start(t, nil), origin(t)
	outside := t.TempDir()
	for name, options := range map[string]map[string]any{
		"another folder": {"dir": outside}, "the one above": {"dir": ".."}, "above, on a detour": {"dir": s.dir + "/a/../../b"},
		"a name that leads out": {"out": "../x"}, "the same further down": {"out": "a/../../x"},
	} {
		status, answer := s.post(request(t, "aria2.addUri", []string{o.URL + "/file"}, options))
		if status != http.StatusBadRequest {
			t.Errorf("%s: %v", name, answer)
		}
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "taken.tar.gz"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	gid, _ := s.call("aria2.addUri", []string{o.URL + "/file"}, map[string]any{"dir": "link"}).(string)
	s.becomes(gid, "error")
	for out, want := range map[string]string{
		"taken.tar.gz": "taken.tar.1.gz", ".bashrc": "_bashrc", "-rf": "_rf", "a\u202eb\n": "a_b_", "sub/deep/x": "sub/deep/x", "": "file",
	} {
		gid, _ := s.call("aria2.addUri", []string{o.URL + "/file"}, map[string]any{"out": out}).(string)
		s.becomes(gid, "complete")
		files := s.call("aria2.getFiles", gid).([]any)[0].(map[string]any)
		if files["path"] != filepath.Join(s.dir, want) {
			t.Errorf("%q: %v, want %s", out, files["path"], want)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(s.dir, "taken.tar.gz")); !bytes.Equal(b, []byte("mine")) {
		t.Error("a file was replaced")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
}
