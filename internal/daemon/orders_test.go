package daemon

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/appbridge"
	"github.com/tributary-http/tributary/internal/net/link/appbridge/appbridgetest"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// TestOrders fills an app's file, stops in the middle, and resumes.
func TestOrders(t *testing.T) {
	const size = 8 << 20
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(512<<10)) // per connection; time to stop halfway
	known := []link.Link{{Name: "wifi"}, {Name: "wifi2"}, {Name: "lte"}, {Name: "lte2"}}
	for i := range known {
		known[i].Metric, known[i].Addrs = 100*i, []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})}
	}
	var dials atomic.Int32 // over links that cost money
	dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		if strings.HasPrefix(l.Name, "lte") {
			dials.Add(1)
		}
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr(0))
	}
	source := discover.NewStatic(known[:2]...)
	proxy, _, stopProxy, err := StartWith(t.Context(), proxyAlone(), slog.New(slog.DiscardHandler),
		transport.Config{Source: discover.WithPaths(source, link.DialFunc(dial).Path)})
	if err != nil {
		t.Fatal(err)
	}
	defer stopProxy()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd := int(file.Fd())
	line := map[string]any{"url": s.URL()}
	app := &appbridgetest.App{Order: func(uint64) (string, int) {
		b, err := json.Marshal(line)
		if err != nil {
			t.Error(err)
		}
		return string(b), fd
	}}
	app.Listen(t, filepath.Join(t.TempDir(), "s"))
	h, err := appbridge.Dial(t.Context(), app.Path, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	d := &Daemon{out: proxy.out, appBridge: &appBridge{bridge: h}, syncTime: time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	filled := make(chan struct{})
	go func() { defer close(filled); d.fillOrders(ctx) }()
	defer func() { stop(); <-filled }()

	url, free := s.URL(), false
	var extra map[string]any // fields of the order
	// fill returns the last progress report before the end, and the end.
	fill := func(id uint64, from map[string]any, step func(at map[string]any)) (at, end map[string]any) {
		t.Helper()
		line = map[string]any{"url": url, "unmetered": free}
		maps.Copy(line, extra)
		if from != nil {
			line["have"], line["validator"], line["mark"] = from["kept"], from["validator"], from["mark"]
			line["size"], line["place"] = from["size"], from["place"]
		}
		app.Say(`{"type":"fetch","id":%d}`, id)
		for {
			select {
			case m := <-app.Steps:
				if m["type"] != "at" {
					return at, m
				}
				at = m
				step(at)
			case <-time.After(limit):
				t.Fatalf("no word of order %d, the last is %v", id, at)
			}
		}
	}

	during := false // some bytes were kept before the end
	half, end := fill(1, nil, func(at map[string]any) {
		kept := int64(at["kept"].(float64))
		during = during || kept > 0 && at["bytes"] != at["kept"]
		b := make([]byte, kept)
		if _, err := file.ReadAt(b, 0); err != nil || s.Object().Mismatch(b, 0) >= 0 {
			t.Errorf("%d bytes are kept, the first wrong one is %d, %v", kept, s.Object().Mismatch(b, 0), err)
		}
		if at["bytes"].(float64) > size/4 {
			app.StopOrder(1)
		}
	})
	if end["type"] != "stopped" || half["bytes"] != half["kept"] || half["kept"] == 0.0 || !during || half["name"] != "object" {
		t.Fatalf("stopped at %v: %v", half, end)
	}
	last, end := fill(2, half, func(at map[string]any) {
		if at["size"] != float64(size) || at["kept"].(float64) < half["kept"].(float64) {
			t.Errorf("what was known is forgotten: %v", at)
		}
	})
	if end["type"] != "done" || last["bytes"] != float64(size) {
		t.Errorf("%v, %v", last, end)
	}
	var brought float64
	links, _ := last["links"].([]any)
	for _, l := range links {
		brought += l.(map[string]any)["bytes"].(float64)
	}
	if missing := float64(size) - half["kept"].(float64); brought < missing {
		t.Errorf("the links brought %v of %v bytes: %v", brought, missing, links)
	}
	b, err := os.ReadFile(file.Name())
	if err != nil || int64(len(b)) != size || s.Object().Mismatch(b, 0) >= 0 {
		t.Errorf("%d bytes, the first wrong one is %d, %v", len(b), s.Object().Mismatch(b, 0), err)
	}
	// An order that must not cost anything does not use the metered links that appear meanwhile.
	known[2].Terms.Metered, known[3].Terms.Metered = true, true
	free = true
	var joined float64 // bytes at that time
	if last, end := fill(3, nil, func(at map[string]any) {
		switch n := at["bytes"].(float64); {
		case joined == 0 && n > 0:
			joined = n
			source.Set(known...)
		case joined > 0 && n > joined+size/4:
			app.StopOrder(3)
		}
	}); end["type"] != "stopped" || joined == 0 {
		t.Errorf("%v, %v", last, end)
	}
	if n := dials.Load(); n != 0 {
		t.Errorf("%d connections over links that cost money", n)
	}
	// The order's own fields, and a checksum that the file does not have.
	seen := len(s.Requests())
	extra = map[string]any{"header": []string{"Referer: https://example.com/", "User-Agent: Browser/1"}, "checksum": "sha256:" + strings.Repeat("0", 64)}
	last, end = fill(4, last, func(map[string]any) {})
	if end["type"] != "failed" || end["code"] != "checksum" || end["again"] != nil || last["bytes"] != 0.0 || last["kept"] != 0.0 {
		t.Errorf("a wrong checksum: %v, %v", last, end)
	}
	for _, q := range s.Requests()[seen:] {
		if q.Header.Get("Referer") != "https://example.com/" || q.Header.Get("User-Agent") != "Browser/1" {
			t.Errorf("fields of the order: %s", q.Raw)
		}
	}
	if len(s.Requests()) == seen {
		t.Error("nothing was asked for")
	}
	for name, value := range map[string]any{"checksum": "md5:00", "header": []string{"Host: secret.example"}} {
		extra = map[string]any{name: value}
		if _, end := fill(5, nil, func(map[string]any) {}); end["type"] != "failed" || end["code"] != "bad_url" || strings.Contains(end["error"].(string), "secret") {
			t.Errorf("%s: %v", name, end)
		}
	}
	url, extra = "ftp://example.com/", nil
	if _, end := fill(6, nil, func(map[string]any) {}); end["type"] != "failed" || end["code"] != "bad_url" || end["error"] == "" || end["again"] != nil {
		t.Errorf("an URL that cannot be used: %v", end)
	}
}
