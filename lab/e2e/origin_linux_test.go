package e2e

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestOriginSettings downloads from origins whose settings make a download in parts hard.
func TestOriginSettings(t *testing.T) {
	r := start(t, quick())
	const size, other = netlab.Bytes(2_000_000), netlab.Bytes(2_000_001)
	r.object(other)
	atLTE := `if ($remote_addr = "` + r.lab.Link("lte").Addr().String() + `") `
	for i, tt := range []struct {
		name string
		netlab.NginxOptions
		args []string
		once bool // an honest proxy passes a 503 on if it is asked again so soon
	}{
		{"closes after 3 requests", netlab.NginxOptions{KeepaliveRequests: 3}, nil, false},
		{"closes after each request", netlab.NginxOptions{KeepaliveRequests: 1}, nil, false},
		{"ignores Range", netlab.NginxOptions{Directives: "max_ranges 0;"}, nil, false},
		{"one request at a time per address", netlab.NginxOptions{
			HTTP: "limit_conn_zone $binary_remote_addr zone=a:1m;", Directives: "limit_conn a 1;",
		}, nil, false},
		{"one request at a time", netlab.NginxOptions{
			HTTP: "limit_conn_zone $server_port zone=a:1m;", Directives: "limit_conn a 1;",
		}, nil, false},
		{"few requests per second", netlab.NginxOptions{
			HTTP: "limit_req_zone $binary_remote_addr zone=a:1m rate=2r/s;", Directives: "limit_req zone=a;",
		}, nil, true},
		{"limits the rate of a connection", netlab.NginxOptions{Directives: "limit_rate 1m;"}, nil, false},
		{"gzip, which the client wants", netlab.NginxOptions{
			Directives: "gzip on; gzip_types *; gzip_min_length 1; gzip_comp_level 1;",
		}, []string{"--compressed"}, false},
		{"gzip, which the client does not want", netlab.NginxOptions{
			Directives: "gzip on; gzip_types *; gzip_min_length 1; gzip_comp_level 1;",
		}, nil, false},
		{"no entity tag", netlab.NginxOptions{Directives: "etag off;"}, nil, false},
		{"no validator", netlab.NginxOptions{Directives: `etag off; add_header Last-Modified "";`}, nil, false},
		{"403 on one link", netlab.NginxOptions{Directives: "deny " + r.lab.Link("lte").Addr().String() + ";"}, nil, false},
		{"a redirect on one link", netlab.NginxOptions{Directives: atLTE + "{ return 302 http://login.lab/; }"}, nil, false},
		{"a login page on one link", netlab.NginxOptions{Directives: atLTE + `{ return 200 "<html>Please log in</html>"; }`}, nil, false},
		{"another version on one link", netlab.NginxOptions{Directives: atLTE + "{ rewrite ^ /" + other.String() + " break; }"}, nil, false},
		{"closes without an answer on one link", netlab.NginxOptions{Directives: atLTE + "{ return 444; }"}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := r.on(t)
			tt.Port = 8100 + i
			var err error
			if r.nginx, err = r.lab.StartNginx(r.ctx, tt.NginxOptions); err != nil {
				t.Fatal(err)
			}
			defer r.nginx.Stop()
			o := r.object(size)
			r.download(o.URL, o, tt.args...)
			if !tt.once {
				r.download(o.URL, o, tt.args...) // with the proxy's memory of the origin
			}
		})
	}
}

func TestClientsRange(t *testing.T) {
	r := start(t, quick())
	o := r.object(12_000_000)
	all, err := io.ReadAll(netlab.Content(o.Size))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("R77 bytes=a-b over both links", func(t *testing.T) {
		r := r.on(t)
		before := r.metrics()
		c := r.ok(r.curl("--fail", "--include", "--range", "1000000-9999999", o.URL))
		head, body, _ := bytes.Cut(c.body, []byte("\r\n\r\n"))
		if !bytes.Equal(body, all[1_000_000:10_000_000]) {
			t.Errorf("wrong bytes, %d of them", len(body))
		}
		for _, want := range []string{"HTTP/1.1 206 ", "\r\nContent-Range: bytes 1000000-9999999/12000000"} {
			if !strings.Contains(string(head), want) {
				t.Errorf("no %q in\n%s", want, head)
			}
		}
		after := r.metrics()
		for _, name := range r.lab.LinkNames() {
			if got := after.Received(name) - before.Received(name); got < 900_000 {
				t.Errorf("%s brought %d bytes", name, got)
			}
		}
	})
	t.Run("resumed download", func(t *testing.T) {
		r := r.on(t)
		file := r.file()
		if err := os.WriteFile(file, all[:3_000_001], 0o644); err != nil {
			t.Fatal(err)
		}
		r.ok(r.curl("--fail", "--continue-at", "-", "-o", file, o.URL))
		r.isObject(r.read(file), o)
	})
}
