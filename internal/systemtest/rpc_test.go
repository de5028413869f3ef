package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/control"
	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// caller calls RPC methods.
type caller struct {
	t     *testing.T
	url   string
	token string
}

// rpcCaller returns a caller for the proxy of a rig whose only other listener is RPC.
func rpcCaller(r *rig) *caller {
	r.t.Helper()
	token, err := daemon.RPCToken(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return &caller{r.t.(*testing.T), "http://" + r.d.Listeners()[0].String() + "/jsonrpc", token}
}

// call calls a method with the token and decodes its result.
func (c *caller) call(result any, method string, params ...any) {
	c.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": append([]any{"token:" + c.token}, params...)})
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.Post(c.url, "application/json", bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Error != nil {
		c.t.Fatalf("%s: %v %s", method, err, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		c.t.Fatal(err)
	}
}

// TestRPCPair: a code comes from the control socket.
func TestRPCPair(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := New(t, Object{Size: mid})
	for _, with := range []bool{true, false} {
		cfg := settings()
		cfg.Control = filepath.Join(t.TempDir(), "control", "s")
		if with {
			cfg.RPC, cfg.DownloadDir = "127.0.0.1:0", t.TempDir()
		}
		r := newRig(t, s, cfg, "wifi")
		c := control.NewClient(cfg.Control)
		code, err := c.Pair(t.Context())
		c.Close()
		if with && (err != nil || len(code) < 16) || !with && !errors.Is(err, control.ErrNoRPC) {
			t.Errorf("%q %v", code, err)
		}
		r.stop()
	}
}

// TestRPCUnmetered: a download that may not cost money uses only links that are not metered.
func TestRPCUnmetered(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := New(t, Object{Size: mid}, RateLimit(paced))
	cfg := settings()
	cfg.RPC, cfg.DownloadDir = "127.0.0.1:0", t.TempDir()
	r := newRig(t, s, cfg, "wifi")
	links := named("wifi", "lte")
	links[1].Terms.Metered = true
	r.source.Set(links...)
	c := rpcCaller(r)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !r.said.has("metered=true") {
		if <-tick.C; t.Context().Err() != nil {
			t.Fatal("the metered link is not found")
		}
	}
	for _, free := range []string{"true", "false"} {
		var gid string
		c.call(&gid, "aria2.addUri", []string{s.URL()}, map[string]any{"out": free, "tributary-unmetered": free})
		for d := (struct{ Status string }{}); d.Status != "complete"; <-tick.C {
			if c.call(&d, "aria2.tellStatus", gid); d.Status == "error" || t.Context().Err() != nil {
				t.Fatal(d.Status)
			}
		}
		if carried := r.carried("lte"); (carried == 0) != (free == "true") {
			t.Errorf("unmetered %s: the metered link carried %d bytes", free, carried)
		}
	}
}

// TestRPC: a download ordered over RPC arrives over both links, and a WebSocket is notified of it.
func TestRPC(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	s := New(t, Object{Size: mid}, RateLimit(paced))
	cfg := settings()
	cfg.RPC, cfg.DownloadDir = "127.0.0.1:0", filepath.Join(t.TempDir(), "files")
	r := newRig(t, s, cfg, "wifi", "lte")
	c := rpcCaller(r)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, strings.Replace(c.url, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	hello := fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":"aria2.getGlobalStat","params":["token:%s"]}`, c.token)
	if err := socket.Write(ctx, websocket.MessageText, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := socket.Read(ctx); err != nil || !strings.Contains(string(text), `"numActive":"0"`) {
		t.Fatalf("%s %v", text, err)
	}
	var gid string
	c.call(&gid, "aria2.addUri", []string{s.URL()}, map[string]any{"out": "sub/object.bin"})
	for _, want := range []string{"aria2.onDownloadStart", "aria2.onDownloadComplete"} {
		if _, text, err := socket.Read(ctx); err != nil || string(text) != fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":[{"gid":%q}]}`, want, gid) {
			t.Errorf("%s %v, want %s", text, err, want)
		}
	}
	var got struct{ Status, TotalLength, CompletedLength, ErrorCode string }
	if c.call(&got, "aria2.tellStatus", gid); got.Status != "complete" || got.TotalLength != fmt.Sprint(mid) || got.CompletedLength != got.TotalLength || got.ErrorCode != "0" {
		t.Errorf("%+v", got)
	}
	b, err := os.ReadFile(filepath.Join(cfg.DownloadDir, "sub", "object.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if w := wrong(s.Object(), b, 0); w != "" || len(b) != mid {
		t.Errorf("%d bytes: %s", len(b), w)
	}
	if r.carried("wifi") == 0 || r.carried("lte") == 0 {
		t.Error("not both links carried it")
	}
}
