package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// need skips a test whose client is not installed.
func need(t *testing.T, program, debian string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed: apt-get install %s", program, debian)
	}
}

// overBoth fails the test unless both links receive something while do runs.
func (r *rig) overBoth(do func()) {
	r.Helper()
	before := r.metrics()
	do()
	after := r.metrics()
	for _, name := range r.lab.LinkNames() {
		if after.Received(name) == before.Received(name) {
			r.Errorf("%s brought nothing", name)
		}
	}
}

// viaEnv runs a client that learns of its proxy from the environment.
func (r *rig) viaEnv(proxy string, argv ...string) ran {
	r.Helper()
	var vars []string
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"} {
		vars = append(vars, "-u", name)
	}
	if proxy != "" {
		vars = append(vars, "http_proxy="+proxy)
	}
	return r.client("env", append(vars, argv...)...) // env(1), since the client command has its own environment
}

// downloads lets a client download o directly, where proxy is "", and through the proxy. Both files must be the object.
func (r *rig) downloads(o netlab.Object, get func(proxy, file string)) {
	r.Helper()
	direct := r.file()
	get("", direct)
	r.isObject(r.read(direct), o)
	file := r.file()
	r.overBoth(func() { get(proxyURL, file) })
	r.isObject(r.read(file), o)
}

const pythonGet = `
import sys, requests
r = requests.get(sys.argv[1], stream=True)
r.raise_for_status()
with open(sys.argv[2], "wb") as f:
    for part in r.iter_content(65536):
        f.write(part)
`

// nodeGet downloads by http.get. From Node 24 on, http.get uses the proxy of the environment; older versions need a
// setting.
const nodeGet = `
const fs = require("fs"), http = require("http");
const [url, file] = process.argv.slice(1);
const proxy = parseInt(process.versions.node) < 24 && process.env.http_proxy;
const { hostname, port } = new URL(proxy || url);
const how = proxy ? { hostname, port, path: url, headers: { Host: new URL(url).host } } : url;
http.get(how, (res) => res.pipe(fs.createWriteStream(file)));
`

// nodeFetch downloads by fetch.
const nodeFetch = `
const fs = require("fs"), stream = require("stream");
const [url, file] = process.argv.slice(1);
fetch(url).then((res) => stream.Readable.fromWeb(res.body).pipe(fs.createWriteStream(file)));
`

func TestClients(t *testing.T) {
	r := start(t, quick())
	o := r.object(5_000_000)
	url := r.nginx.NamedURL(o)
	t.Run("wget", func(t *testing.T) {
		need(t, "wget", "wget")
		r := r.on(t)
		r.downloads(o, func(proxy, file string) {
			r.ok(r.viaEnv(proxy, "wget", "-q", "-O", file, url))
			if err := os.Truncate(file, 3_000_000); err != nil {
				t.Fatal(err)
			}
			r.ok(r.viaEnv(proxy, "wget", "-q", "--continue", "-O", file, url))
		})
	})
	t.Run("aria2", func(t *testing.T) {
		need(t, "aria2c", "aria2")
		r := r.on(t)
		for _, connections := range []string{"1", "4"} {
			r.downloads(o, func(proxy, file string) {
				r.ok(r.viaEnv(proxy, "aria2c", "--no-conf", "--quiet", "--async-dns=false", "--dir=/", "--out="+file,
					"--min-split-size=1M", "--split="+connections, "--max-connection-per-server="+connections, url))
			})
		}
	})
	t.Run("Python requests", func(t *testing.T) {
		need(t, python, "python3")
		if exec.Command(python, "-c", "import requests").Run() != nil {
			t.Skip("requests is not installed: apt-get install python3-requests")
		}
		r := r.on(t)
		r.downloads(o, func(proxy, file string) { r.ok(r.viaEnv(proxy, python, "-c", pythonGet, url, file)) })
	})
	node := func(r *rig, proxy, script, file string) {
		r.Helper()
		r.ok(r.viaEnv(proxy, "env", "NODE_USE_ENV_PROXY=1", "node", "-e", script, url, file))
	}
	t.Run("Node http.get", func(t *testing.T) {
		need(t, "node", "nodejs")
		r := r.on(t)
		r.downloads(o, func(proxy, file string) { node(r, proxy, nodeGet, file) })
	})
	t.Run("Node fetch", func(t *testing.T) {
		need(t, "node", "nodejs")
		if exec.Command("node", "-e", "process.exit(parseInt(process.versions.node) < 24 ? 1 : 0)").Run() != nil {
			t.Skip("fetch knows no proxy before Node 24")
		}
		r := r.on(t)
		for _, proxy := range []string{"", proxyURL} { // it asks for a tunnel even for http, and so uses one link
			file := r.file()
			node(r, proxy, nodeFetch, file)
			r.isObject(r.read(file), o)
		}
	})
	t.Run("Go net/http", func(t *testing.T) {
		r := r.on(t)
		r.downloads(o, func(proxy, file string) { r.goGet(proxy, url, file) })
	})
	t.Run("apt", func(t *testing.T) { r.on(t).apt() })
	t.Run("pip", func(t *testing.T) { r.on(t).pip() })
	t.Run("git", func(t *testing.T) { r.on(t).git() })
}

// goGet downloads as a Go program does; names are looked up by the proxy, or are the origin's.
func (r *rig) goGet(proxy, object, file string) {
	r.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return r.lab.DialContext(ctx, network, strings.Replace(addr, netlab.OriginName, netlab.OriginAddr.String(), 1))
	}}
	defer transport.CloseIdleConnections()
	if proxy != "" {
		transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
	}
	res, err := (&http.Client{Transport: transport}).Get(object)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		r.Fatalf("%s, %v", res.Status, err)
	}
	r.write(file, body)
}

// content returns the bytes of the object of a size.
func (r *rig) content(size netlab.Bytes) []byte {
	r.Helper()
	b, err := io.ReadAll(netlab.Content(size))
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func (r *rig) write(path string, text []byte) {
	r.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		r.Fatal(err)
	}
}
