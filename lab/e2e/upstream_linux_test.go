package e2e

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/link/sockstest"
	"github.com/tributary-http/tributary/lab/netlab"
)

// socks starts a SOCKS5 proxy in the server namespace, at the far end of lte, and returns it with the configuration of a
// link "office" through it. The proxy resolves the origin's name itself.
func (r *rig) socks() (server *sockstest.Server, config string) {
	r.Helper()
	var ln net.Listener
	err := r.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp4", "10.77.2.1:0")
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	server = sockstest.Serve(r.T, ln, sockstest.Options{
		User: "me", Password: "secret",
		Dial: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
			host, port, _ := net.SplitHostPort(addr)
			if host == netlab.OriginName {
				host = netlab.OriginAddr.String()
			}
			err = r.lab.InServer(func() error {
				c, err = (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
				return err
			})
			return c, err
		},
	})
	config = filepath.Join(r.lab.Dir, "upstream.toml")
	r.write(config, []byte("[link.office]\nvia = \"socks5://me:secret@"+server.Addr()+"\"\n"))
	return server, config
}

// TestUpstream divides a download over an interface and a link through a SOCKS5 proxy, which the system reaches over an
// interface that is not a link.
func TestUpstream(t *testing.T) {
	r := newRig(t, equal(), netlab.NginxOptions{})
	server, config := r.socks()
	r.options.Links, r.options.Args = []string{"wifi", "office"}, []string{"--config", config}
	r.serve()
	o := r.object(10_000_000)
	before := r.metrics()
	r.download(r.nginx.NamedURL(o), o)
	after := r.metrics()
	for _, name := range r.options.Links {
		if n := after.Received(name) - before.Received(name); n < int64(o.Size)/part {
			t.Errorf("%s carried %d bytes of %d", name, n, o.Size)
		}
	}
	if asked := server.Requests(); len(asked) == 0 || slices.ContainsFunc(asked, func(s string) bool { return !strings.HasPrefix(s, "name "+netlab.OriginName+":") }) {
		t.Errorf("the proxy was asked for %q", asked)
	}
	for _, q := range r.dns.Queries() {
		if q.Link != "wifi" {
			t.Errorf("%s was asked for over %s", q.Name, q.Link)
		}
	}
	if said := r.proxy.Said(); strings.Contains(said, "secret") {
		t.Error("the log has the password")
	}
	t.Run("doctor", func(t *testing.T) {
		r := r.on(t)
		c := r.own("doctor", "--config", config, "--link", "wifi", "--link", "office")
		if !strings.Contains(string(c.body), "ok       upstream office") || strings.Contains(string(c.body), "secret") {
			t.Errorf("%s", c.body)
		}
	})
	t.Run("R183 R182 denied destinations", func(t *testing.T) {
		r := r.on(t)
		asked := len(server.Requests())
		for _, host := range []string{netlab.AdminAddr, "localhost:19091", "169.254.169.254", "metadata.google.internal", "127.1", "[::1]"} {
			c := r.curl("-o", "/dev/null", "-w", "%{http_code}", "http://"+host+"/metrics")
			if got := string(c.body); got != "403" && got != "502" { // over wifi a name may fail to resolve
				t.Errorf("%s: %s %s", host, got, c.said)
			}
		}
		if all := server.Requests()[asked:]; len(all) > 0 {
			t.Errorf("the proxy was asked for %q", all)
		}
	})
}

// TestUpstreamAlone: the SOCKS5 proxy resolves names, and no other server is asked for them.
func TestUpstreamAlone(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	server, config := r.socks()
	r.options.Links, r.options.Args = []string{"office"}, []string{"--config", config}
	r.serve()
	o := r.object(1_000_000)
	r.download(r.nginx.NamedURL(o), o)
	r.ok(r.curl("--fail", "-p", "-o", "/dev/null", "-r", "0-9", r.nginx.NamedURL(o))) // a tunnel, if its port is allowed
	if asked := r.dns.Queries(); len(asked) > 0 {
		t.Errorf("name servers were asked: %v", asked)
	}
	if len(server.Requests()) == 0 {
		t.Error("the proxy was asked for nothing")
	}
}
