package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// rpcURL is where the program answers aria2's JSON-RPC in these tests.
const rpcURL = "http://127.0.0.1:6800/jsonrpc"

// startRPC makes a rig whose program takes orders by RPC and puts files into the folder.
func startRPC(t *testing.T, sc netlab.Scenario) (r *rig, folder string) {
	t.Helper()
	r = newRig(t, sc, netlab.NginxOptions{})
	folder = filepath.Join(r.lab.Dir, "downloads")
	file := filepath.Join(r.lab.Dir, "rpc.toml")
	r.write(file, fmt.Appendf(nil, "rpc = \"127.0.0.1:6800\"\ndownload_dir = %q\n", folder))
	r.options.Args = []string{"--config", file, "--max-concurrent", "4"}
	r.serveRPC()
	return r, folder
}

// serveRPC starts the program.
func (r *rig) serveRPC() {
	r.Helper()
	r.serve()
	if err := r.lab.WaitForClient(r.ctx, "127.0.0.1:6800"); err != nil {
		r.Fatal(err)
	}
}

// rpcToken returns the token of the program.
func (r *rig) rpcToken() string {
	r.Helper()
	return strings.TrimSpace(string(r.ok(r.client("env", "HOME="+r.lab.Dir, r.options.Binary, "rpc", "token")).body))
}

// rpcCall calls a method and decodes its result.
func (r *rig) rpcCall(result any, method string, params ...any) {
	r.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": append([]any{"token:" + r.rpcToken()}, params...)})
	if err != nil {
		r.Fatal(err)
	}
	body := r.ok(r.client("curl", "-sS", "-d", string(text), rpcURL)).body
	var answer struct {
		Result json.RawMessage
		Error  any
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error != nil {
		r.Fatalf("%s: %s %v", method, body, err)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		r.Fatal(err)
	}
}

// globalStat returns how many downloads run and how many have ended, in total.
func (r *rig) globalStat() (active, stopped string) {
	r.Helper()
	var stat struct{ NumActive, NumStopped string }
	r.rpcCall(&stat, "aria2.getGlobalStat")
	return stat.NumActive, stat.NumStopped
}

// TestRPCKilled: 20 ordered downloads all arrive, although the program is killed, ended and killed again meanwhile, and
// the last run fetches only the missing bytes. A paused download stays paused.
func TestRPCKilled(t *testing.T) {
	r, folder := startRPC(t, quick())
	r.stopped = true // more than once
	var objects []netlab.Object
	var calls []any
	for i := range 20 {
		o := r.object(netlab.Bytes(2_000_000 + 1000*i))
		objects = append(objects, o)
		calls = append(calls, map[string]any{
			"methodName": "aria2.addUri", "params": []any{"token:" + r.rpcToken(), []string{o.URL}, map[string]string{"out": fmt.Sprintf("%d.bin", i)}},
		})
	}
	paused := r.object(500_000)
	var gid, state string
	r.rpcCall(&gid, "aria2.addUri", []string{paused.URL}, map[string]string{"pause": "true", "out": "paused.bin"})
	var added [][]string
	r.rpcCall(&added, "system.multicall", calls)
	if len(added) != len(objects) {
		t.Fatalf("%v", added)
	}
	path := func(i int) string { return filepath.Join(folder, fmt.Sprintf("%d.bin", i)) }
	complete := func() (n int) {
		for i := range objects {
			if _, err := os.Stat(path(i)); err == nil {
				n++
			}
		}
		return n
	}
	completes := func(n int) {
		t.Helper()
		r.until(fmt.Sprintf("%d downloads are complete", n), func() bool { return complete() >= n })
	}
	completes(3)
	r.kill()
	r.serveRPC()
	completes(7)
	if err := r.proxy.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := r.proxy.Wait(r.ctx); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	r.serveRPC()
	completes(12)
	r.kill()
	left, began := int64(0), complete()
	for i, o := range objects {
		if _, err := os.Stat(path(i)); err != nil {
			left += int64(o.Size) - r.kept(path(i))
		}
	}
	r.serveRPC()
	completes(len(objects))
	r.until("the list says so", func() bool { a, s := r.globalStat(); return a == "0" && s == "20" })
	for i, o := range objects {
		r.isObject(r.read(path(i)), o)
	}
	var status struct {
		Links []struct {
			Bytes int64
			Waste int64 `json:"waste_bytes"`
		}
	}
	if err := json.Unmarshal(r.ok(r.tributary("status", "--json")).body, &status); err != nil {
		t.Fatal(err)
	}
	got := int64(0)
	for _, l := range status.Links {
		got += l.Bytes - l.Waste
	}
	const heads = 64 << 10 // HTTP heads of objects that are small enough for one link, which count
	t.Logf("the last run began with %d complete, %d bytes were missing, %d were fetched", began, left, got)
	if got < left || got > left+heads {
		t.Errorf("%d bytes were fetched, %d were missing", got, left)
	}
	var d struct{ Status string }
	if r.rpcCall(&d, "aria2.tellStatus", gid); d.Status != "paused" {
		t.Errorf("what was paused is %s", d.Status)
	}
	r.rpcCall(&state, "aria2.unpause", gid)
	r.until("it is complete", func() bool { _, s := r.globalStat(); return s == "21" })
	r.isObject(r.read(filepath.Join(folder, "paused.bin")), paused)
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 21 {
		t.Errorf("%v, %v", entries, err)
	}
	t.Run("another user", func(t *testing.T) {
		c := r.on(t).asNobody("curl", "-sS", "-d", `{"jsonrpc":"2.0","id":1,"method":"aria2.getVersion","params":["token:`+r.rpcToken()+`"]}`, rpcURL)
		if !strings.Contains(string(c.body), "This port serves only root and the user who runs Tributary") {
			t.Errorf("%s %s", c.body, c.said)
		}
	})
}

// TestRPCOff: without the key in the configuration nothing listens and no file is created.
func TestRPCOff(t *testing.T) {
	r := start(t, quick())
	if c := r.client("curl", "-sS", rpcURL); c.code != 7 { // cannot connect
		t.Errorf("curl: %d %s", c.code, c.said)
	}
	for _, name := range []string{"rpc-token", "downloads.json"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(r.lab.History()), name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}
