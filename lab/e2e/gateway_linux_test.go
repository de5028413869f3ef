package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	gatewayAddr = "127.0.0.1:18081"
	gatewayURL  = "http://" + gatewayAddr
	// gatewaySize is the size of the object that each program downloads.
	gatewaySize = netlab.Bytes(100_000_000)
	// registryPort is where Debian's registry listens, behind nginx.
	registryPort = 5000
)

// The servers that programs download from, all of them nginx.
const (
	indexName    = netlab.OriginName
	cdnName      = "cdn." + netlab.OriginName
	hubName      = "hub." + netlab.OriginName
	registryName = "registry." + netlab.OriginName
)

// virtualHosts are a Hugging Face hub, whose files are elsewhere, and a registry.
func virtualHosts(cert netlab.Certificate) string {
	server := func(name, location string) string {
		return fmt.Sprintf("server {\nlisten 443 ssl http2;\nlisten [::]:443 ssl http2;\nserver_name %s;\nssl_certificate %s;\nssl_certificate_key %s;\n%s\n}\n",
			name, cert.Chain, cert.Key, location)
	}
	return server(hubName, `
location = /lab/big/resolve/main/model.bin {
	add_header X-Repo-Commit 0123456789012345678901234567890123456789 always;
	add_header X-Linked-Size `+fmt.Sprint(int64(gatewaySize))+` always;
	add_header X-Linked-Etag '"big"' always;
	add_header X-Xet-Hash aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa always;
	add_header Link '<https://`+hubName+`/xet>; rel="xet-auth"' always;
	return 302 https://`+cdnName+`/`+gatewaySize.String()+`?signature=x;
}`) + server(registryName+" "+netlab.DockerName, fmt.Sprintf(`
location / {
	proxy_pass http://127.0.0.1:%d;
	proxy_set_header Host $http_host;
	proxy_set_header X-Forwarded-Proto https;
	proxy_http_version 1.1;
	proxy_max_temp_file_size 0;
	client_max_body_size 0;
}`, registryPort))
}

// startGateway makes a rig whose program has a gateway.
func startGateway(t *testing.T, sc netlab.Scenario) *rig {
	t.Helper()
	r := newRig(t, sc, netlab.NginxOptions{Port: 8080}) // started only for the lab and its certificate
	r.nginx.Stop()
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if r.nginx, err = r.lab.StartNginx(r.ctx, netlab.NginxOptions{
		HTTP: virtualHosts(cert), Directives: "types { text/html html; text/javascript js; image/svg+xml svg; }",
	}); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(r.lab.Dir, "tributary", "config.toml")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	// A public name that resolves to a private address is allowed for the lab's Docker registry.
	r.write(conf, fmt.Appendf(nil, "gateway = %q\ngateway_hosts = [%q]\nallow_destinations = [%q]\n", gatewayAddr, cdnName, netlab.OriginAddr.String()))
	r.write(filepath.Join("/etc/netns", r.lab.ClientName(), "hosts"), []byte("127.0.0.1 localhost\n"+netlab.OriginAddr.String()+" "+netlab.DockerName+"\n"))
	r.serve()
	if err := r.lab.WaitForClient(r.ctx, gatewayAddr); err != nil {
		t.Fatal(err)
	}
	return r
}

// tributary runs a command of the program in the client namespace.
func (r *rig) tributary(args ...string) ran {
	r.Helper()
	return r.client("env", append([]string{"XDG_RUNTIME_DIR=" + r.lab.Dir, "XDG_CONFIG_HOME=" + r.lab.Dir, r.options.Binary}, args...)...)
}

// mounted returns a command line that runs another one with the copy of a folder of /etc mounted over the original. The
// caller may fill the copy; no other process sees it.
func (r *rig) mounted(copyOf, over string, argv ...string) []string {
	r.Helper()
	if err := os.Mkdir(over, 0o755); err == nil { // a place to mount it at
		r.Cleanup(func() { _ = os.Remove(over) })
	}
	script := fmt.Sprintf(`mount --bind %q %q && exec "$@"`, copyOf, over)
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"}, argv...)
}

// measured runs a client that downloads gatewaySize bytes, and logs how long the links were busy, compared with the
// limit.
func (r *rig) measured(what string, limit time.Duration, do func()) {
	r.Helper()
	received := func() (sum int64) {
		for _, name := range r.lab.LinkNames() {
			_, n := r.carried(name)
			sum += n
		}
		return sum
	}
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan time.Duration)
	go func() {
		var first, last time.Time
		before, at := received(), int64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				n := received() - before
				if n > 20_000 && first.IsZero() {
					first = now
				}
				if n > at+3000 && n < int64(gatewaySize)*11/10 {
					last = now
				}
				at = n
			case <-ctx.Done():
				ended <- last.Sub(first)
				return
			}
		}
	}()
	before, began := r.metrics(), time.Now()
	do()
	all := time.Since(began)
	stop()
	took := <-ended
	after := r.metrics()
	var parts []string
	for _, name := range r.lab.LinkNames() {
		n := after.Received(name) - before.Received(name)
		if n < int64(gatewaySize)/10 {
			r.Errorf("%s: %s brought %d bytes", what, name, n)
		}
		parts = append(parts, fmt.Sprintf("%s %d %%", name, 100*n/int64(gatewaySize)))
	}
	r.Logf("%s: the links were busy for %v, %.1f %% of the limit; %s; %v in all", what, took.Round(time.Millisecond),
		100*limit.Seconds()/took.Seconds(), strings.Join(parts, ", "), all.Round(time.Millisecond))
}

// TestGatewayClients: real programs download through the gateway once "tributary use" has changed their settings, and
// behave as docs/GATEWAY.md says when the proxy is not running. The rates are logged.
func TestGatewayClients(t *testing.T) {
	if !matrix() {
		t.Skip("100 MB for each program: make matrix runs it")
	}
	var limit time.Duration
	t.Run("curl", func(t *testing.T) {
		r := startGateway(t, shipped(t, "hs"))
		o := r.object(gatewaySize)
		if err := r.lab.Fresh(r.ctx); err != nil {
			t.Fatal(err)
		}
		var err error
		if limit, err = r.lab.Limit(r.ctx, r.nginx.SecureURL(o), o.Size, r.lab.Links()...); err != nil {
			t.Fatal(err)
		}
		r.measured("curl", limit, func() {
			r.isObject(r.ok(r.client("curl", "-sS", "--fail", gatewayURL+"/https/"+cdnName+"/"+o.Size.String())).body, o)
		})
		c := r.ok(r.client("curl", "-sS", "--fail", "-r", "1000-1000999", gatewayURL+"/https/"+cdnName+"/"+o.Size.String()))
		if !bytes.Equal(c.body, r.content(gatewaySize)[1000:1_001_000]) {
			t.Error("a range: wrong bytes")
		}
		for _, field := range []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Host: evil.example"} {
			if c := r.client("curl", "-sS", "-o", os.DevNull, "-w", "%{http_code}", "-H", field, gatewayURL+"/https/"+cdnName+"/x"); string(c.body) != "403" {
				t.Errorf("%s: %s", field, c.body)
			}
		}
	})
	for _, p := range []struct {
		name, command, debian string
		run                   func(r *rig, limit time.Duration) (without func(r *rig))
	}{
		{"pip", python, "python3-pip", (*rig).pipByGateway},
		{"go", "go", "golang", (*rig).goByGateway},
		{"apt", "apt-get", "apt", (*rig).aptByGateway},
		{"dnf", "dnf", "dnf", (*rig).dnfByGateway},
		{"conda", "zstd", "zstd", (*rig).condaByGateway},
		{"py-rattler", "zstd", "zstd", (*rig).rattlerByGateway},
		{"brew", "ruby", "ruby", (*rig).brewByGateway},
		{"rustup", "rustup", "", (*rig).rustupByGateway},
		{"Hugging Face", "hf", "", (*rig).hubByGateway},
		{"skopeo and podman", "skopeo", "skopeo", (*rig).imagesByGateway},
		{"docker and containerd", "dockerd", "docker.io", (*rig).dockerByGateway},
		{"nix", "nix-store", "nix-bin", (*rig).nixByGateway},
	} {
		t.Run(p.name, func(t *testing.T) {
			need(t, p.command, p.debian)
			r := startGateway(t, shipped(t, "hs"))
			r.object(gatewaySize)
			if _, err := exec.LookPath("docker-registry"); err == nil {
				r.startRegistry()
			}
			without := p.run(r, limit)
			if err := r.proxy.Stop(); err != nil {
				t.Error(err)
			}
			r.stopped = true
			without(r)
		})
	}
}

// TestGateway tests the gateway over the links of the lab, and how "tributary use" sets it up.
func TestGateway(t *testing.T) {
	r := startGateway(t, quick())
	o := r.object(5_000_000)
	ask := func(path string, args ...string) (code, said string) {
		r.Helper()
		c := r.client("curl", append([]string{"-sS", "-w", "\n%{http_code}", gatewayURL + path}, args...)...)
		i := bytes.LastIndexByte(c.body, '\n')
		return string(c.body[i+1:]), string(c.body[:i])
	}
	r.overBoth(func() {
		r.isObject(r.ok(r.client("curl", "-sS", "--fail", gatewayURL+"/https/"+cdnName+"/"+o.Size.String())).body, o)
	})
	if code, _ := ask("/https/" + indexName + "/x"); code != "403" {
		t.Errorf("a host that nobody listed: %s", code)
	}
	if code, _ := ask("/https/"+cdnName+"/x", "-X", "POST"); code != "405" {
		t.Errorf("POST: %s", code)
	}
	c := r.client("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "curl", "-sS", "-o", os.DevNull, "-w", "%{http_code}", gatewayURL+"/https/"+cdnName+"/x")
	if string(c.body) != "403" {
		t.Errorf("another user: %s %s", c.body, c.said)
	}
	if code, said := ask("/", "-x", proxyURL, "-H", "Proxy-Connection:"); code != "403" {
		t.Errorf("through the proxy: %s %s", code, said)
	}
	if c := r.client("curl", "-sS", "-o", os.DevNull, "-w", "%{http_code}", "-x", gatewayURL, "http://"+netlab.OriginName+"/"); string(c.body) != "403" {
		t.Errorf("as a proxy: %s", c.body)
	}
	r.uses(filepath.Join(r.lab.Dir, "go", "env"), plain, func() {
		if code, _ := ask("/https/" + indexName + "/" + o.Size.String()); code != "200" {
			t.Errorf("a host that use recorded: %s", code)
		}
	}, "go", "--upstream", "https://"+indexName)
	if code, _ := ask("/https/" + indexName + "/x"); code != "403" {
		t.Errorf("a host after --undo: %s", code)
	}
	if c := r.tributary("use", "go", "--upstream", "https://"+indexName); c.failed == nil || !strings.Contains(c.said, "can take port") {
		t.Errorf("R226 a port that others can take: %d %s", c.code, c.said)
	}
	if c := r.tributary("use", "go", "--force", "--upstream", "https://nowhere.invalid/"); c.failed == nil || !strings.Contains(c.said, "nothing was changed") {
		t.Errorf("a fetch that fails: %d %s", c.code, c.said)
	}
	if _, err := os.Stat(filepath.Join(r.lab.Dir, "go", "env")); err == nil {
		t.Error("it was written though the fetch failed")
	}
	if code, _ := ask("/https/nowhere.invalid/x"); code != "403" {
		t.Errorf("its host: %s", code)
	}
	if c := r.ok(r.tributary("use", "go", "--upstream", "https://"+indexName, "--print")); !strings.Contains(string(c.body), "would be written: ") {
		t.Errorf("--print: %s", c.body)
	}
	if c := r.tributary("use", "emacs"); c.code != 2 {
		t.Errorf("an unknown program: %d", c.code)
	}
}

// gatewayPage tries everything that a page can do to see something of the gateway, and shows what it saw.
const gatewayPage = `<!DOCTYPE html><html><head><meta charset="utf-8"></head><body><p id="seen"></p><script>
onload = async () => {
	const at = "%s";
	const seen = [];
	const element = (name, more) => new Promise((resolve) => {
		const e = document.createElement(name);
		e.onload = () => { seen.push(name); resolve(); };
		e.onerror = () => resolve();
		Object.assign(e, more);
		document.body.append(e);
	});
	await element("img", { src: at + "1.svg" });
	await element("script", { src: at + "sum.js" });
	await element("link", { rel: "stylesheet", href: at + "sum.js" });
	for (const how of [{}, { mode: "no-cors" }, { mode: "cors", headers: { "X-Mine": "1" } }, { method: "POST", mode: "no-cors" }]) {
		try {
			const text = await (await fetch(at + "1.svg", how)).text();
			if (text.includes("<svg")) seen.push("fetch " + JSON.stringify(how));
		} catch { }
	}
	if (window.ran) seen.push("ran");
	document.getElementById("seen").textContent = "seen: " + seen.join(" ") + ".";
	document.title = "done";
};
</script></body></html>
`

// TestGatewayBrowser: a page sees nothing of the gateway, whether from another site, by a name that resolves to this
// machine, or opened in a tab.
func TestGatewayBrowser(t *testing.T) {
	need(t, "chromium", "chromium")
	r := startGateway(t, quick())
	const prefix = "/https/" + cdnName + "/page/"
	page := r.mkdir(r.nginx.Root(), "page")
	r.write(filepath.Join(page, "1.svg"), fmt.Appendf(nil, pageSVG, 11))
	r.write(filepath.Join(page, "sum.js"), []byte("window.ran = true"))
	for name, at := range map[string]string{
		"plain": "/page/", "cross": gatewayURL + prefix, "localhost": strings.Replace(gatewayURL, "127.0.0.1", "localhost", 1) + prefix,
	} {
		r.write(filepath.Join(page, name+".html"), fmt.Appendf(nil, gatewayPage, at))
	}
	if c := r.ok(r.client("curl", "-sS", "--fail", gatewayURL+prefix+"1.svg")); !strings.Contains(string(c.body), "<svg") {
		t.Fatalf("a program: %s", c.body)
	}
	b := openBrowser(r, "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests", // not the gateway's
		"--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP page.test "+netlab.OriginAddr.String())
	if html := b.load("http://page.test/page/plain.html"); !strings.Contains(html, "img script link fetch {}") || !strings.Contains(html, " ran.") {
		t.Fatalf("the page works on its own server: %s", html)
	}
	for _, name := range []string{"cross", "localhost"} {
		if html := b.load("http://page.test/page/" + name + ".html"); !strings.Contains(html, "seen: .<") {
			t.Errorf("%s: %s", name, html)
		}
	}
	for _, host := range []string{gatewayAddr, "rebound.test" + gatewayAddr[strings.IndexByte(gatewayAddr, ':'):]} {
		if text := b.text(host, prefix+"plain.html"); !strings.Contains(text, "Tributary (gateway): ") {
			t.Errorf("%s shows %q", host, text)
		}
	}
}
