package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestAppDownload: an app hands over files, and the program fills them over both links; no byte passes through the app.
func TestAppDownload(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	r.android()
	o := r.object(20_000_000)
	p := newPhone(r, 0, "wifi", "lte")
	file, err := os.Create(r.file())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd := int(file.Fd())
	line := map[string]any{"url": r.nginx.NamedURL(o)}
	p.Order = func(uint64) (string, int) {
		b, err := json.Marshal(line)
		if err != nil {
			t.Error(err)
		}
		return string(b), fd
	}
	// until returns the last report on a download before its end, and the report of its end.
	until := func(end string, half func(bytes float64)) (at, ended map[string]any) {
		t.Helper()
		for {
			select {
			case m := <-p.Steps:
				if m["type"] != "at" {
					if m["type"] != end {
						t.Fatalf("it ends with %v", m)
					}
					return at, m
				}
				at = m
				half(m["bytes"].(float64))
			case <-r.ctx.Done():
				t.Fatal("in vain")
			}
		}
	}

	p.Say(`{"type":"fetch","id":1}`)
	stopped := false
	at, _ := until("stopped", func(n float64) {
		if n > float64(o.Size)/3 && !stopped {
			stopped = true
			p.StopOrder(1)
		}
	})
	if at["name"] != o.URL[strings.LastIndexByte(o.URL, '/')+1:] || at["validator"] == "" || at["size"] != float64(o.Size) || at["bytes"] == float64(o.Size) {
		t.Fatalf("stopped at %v", at)
	}
	r.settle()
	before := map[string]int64{}
	for _, l := range r.lab.LinkNames() {
		_, before[l] = r.carried(l)
	}
	for _, key := range []string{"validator", "mark", "size", "place"} {
		line[key] = at[key]
	}
	line["have"] = at["kept"]
	p.Say(`{"type":"fetch","id":2}`)
	until("done", func(float64) {})
	r.isObject(r.read(file.Name()), o)
	r.settle()
	rest := float64(o.Size) - at["bytes"].(float64)
	total := int64(0)
	for _, l := range r.lab.LinkNames() {
		_, n := r.carried(l)
		n -= before[l]
		t.Logf("%s carried %d of %.0f bytes", l, n, rest)
		if float64(n) < rest/part {
			t.Errorf("%s carried %d of %.0f bytes", l, n, rest)
		}
		total += n
	}
	if float64(total) > rest*1.15 {
		t.Errorf("%d bytes were carried for %.0f: it began anew", total, rest)
	}

	line = map[string]any{"url": r.nginx.NamedSecureURL(o)}
	p.Say(`{"type":"fetch","id":3}`)
	until("done", func(float64) {})
	r.isObject(r.read(file.Name()), o)

	line["url"] = r.nginx.NamedURL(o) + ".missing"
	p.Say(`{"type":"fetch","id":4}`)
	if _, end := until("failed", func(float64) {}); end["again"] == true || end["error"] != fmt.Sprintf("%s answers 404 Not Found", netlab.OriginName) {
		t.Errorf("of what is missing it says %v", end)
	}
}
