package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// running is a running `tributary run`.
type running struct {
	*rig
	cmd       *exec.Cmd
	temporary string // its folder for temporary files
	out, said output
}

// output is the output of a running program so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// run starts a command with `tributary run`; argv may begin with further flags.
func (r *rig) run(argv ...string) *running {
	r.Helper()
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	var flags []string
	for _, name := range r.lab.LinkNames() {
		flags = append(flags, "--link", name)
	}
	f := &running{rig: r, temporary: filepath.Dir(r.file())}
	if err := os.Chmod(f.temporary, 0o1777); err != nil {
		r.Fatal(err)
	}
	// The system trusts the authority of the laboratory.
	argv = append(append([]string{r.options.Binary, "run"}, flags...), argv...)
	const script = `mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"`
	f.cmd = r.lab.Client(r.ctx, "unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", script, cert.CA}, argv...)...)
	f.cmd.Dir = f.temporary
	f.cmd.Env = append(withoutTrust(os.Environ()), "HOME="+r.lab.Dir, "LC_ALL=C", "TMPDIR="+f.temporary)
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.said
	if err := f.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return f
}

// withoutTrust returns an environment without proxies and certificates.
func withoutTrust(env []string) (kept []string) {
	for _, e := range env {
		name, _, _ := strings.Cut(strings.ToUpper(e), "=")
		if !strings.HasSuffix(name, "_PROXY") && !strings.Contains(name, "_CA_") && !strings.HasSuffix(name, "CAINFO") &&
			!strings.HasSuffix(name, "_CERT") && !strings.HasPrefix(name, "SSL_CERT") && !strings.HasPrefix(name, "XDG_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// ended waits for the end and fails the test unless the exit code is the wanted one and nothing is left behind.
func (f *running) ended(code int, says ...string) {
	f.Helper()
	_ = f.cmd.Wait() // the code shows it
	said := f.said.String()
	if got := f.cmd.ProcessState.ExitCode(); got != code || strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic:") {
		f.Fatalf("exit code %d, want %d: %s%s", got, code, said, f.out.String())
	}
	for _, s := range says {
		if !strings.Contains(said, s) {
			f.Errorf("%q lacks %q", said, s)
		}
	}
	if left, err := filepath.Glob(filepath.Join(f.temporary, "tributary-*")); err != nil || left != nil {
		f.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRunCurl tests both protocols of the client, and an origin without HTTP/2, in which case the client is not offered
// HTTP/2 either.
func TestRunCurl(t *testing.T) {
	for _, c := range []struct {
		flag, version string
		without       bool
	}{{"--http1.1", "1.1", false}, {"--http2", "2", false}, {"--http2", "1.1", true}} {
		r := newRig(t, quick(), netlab.NginxOptions{NoHTTP2: c.without})
		o := r.object(5_000_000)
		f := r.run("curl", "-sS", "--fail", c.flag, "-w", "%{http_version}", "-o", "file", r.nginx.NamedSecureURL(o))
		f.divided()
		if got := f.out.String(); got != c.version {
			t.Errorf("HTTP/%s, want %s", got, c.version)
		}
		r.isObject(r.read(filepath.Join(f.temporary, "file")), o)
	}
}

// TestRunExit: the exit code is the command's, and processes that it leaves in the background end with it.
func TestRunExit(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	r.run("sh", "-c", "sleep 1000 & echo $!; exit 7").ended(7, "the proxy carried nothing")
	r.run("sh", "-c", "kill -TERM $$").ended(143)
	r.run("/nonexistent").ended(127, "/nonexistent")
	r.run("--only", "*", "true").ended(2, "--only")
	f := r.run("sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
	f.waitFor("ready")
	if err := f.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.ended(5)
	if !strings.Contains(f.out.String(), "got") {
		t.Errorf("the command did not get the signal: %q", f.out.String())
	}
}

// waitFor waits until the command has printed something.
func (f *running) waitFor(text string) {
	f.Helper()
	f.until("it prints "+text, func() bool { return strings.Contains(f.out.String(), text) })
}

// TestRunUnproxied: the last line names programs that connect without the proxy, and says if none does.
func TestRunUnproxied(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	url := r.nginx.NamedSecureURL(r.object(5_000_000))
	r.run("curl", "-sS", "--fail", "-o", "file", "--limit-rate", "4M", "--noproxy", "*", url).ended(0, "the proxy carried nothing; without the proxy: curl (over one link")
	r.run("true").ended(0, "no connection without it was seen")
}

// TestRunKilled: kill -9 leaves neither a process, nor a port, nor a file.
func TestRunKilled(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	f := r.run("sh", "-c", `trap '' TERM HUP; setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' & echo $$ $PPID $https_proxy; ls -l "$SSL_CERT_FILE"; echo ready; exec sleep 1000`)
	f.waitFor("ready")
	var pids [][]string // IDs of the process in the background, and of the command and the supervisor
	f.until("it prints their process IDs", func() bool {
		pids = regexp.MustCompile(`(?m)^(\d+)$|^(\d+) (\d+) `).FindAllStringSubmatch(f.out.String(), -1)
		return len(pids) == 2
	})
	port := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`).FindStringSubmatch(f.out.String())
	if port == nil || !strings.Contains(f.out.String(), "-rw-------") {
		t.Fatalf("%q", f.out.String())
	}
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = f.cmd.Wait()
	r.until("all is gone", func() bool {
		for _, m := range pids {
			for _, pid := range m[1:] {
				if _, err := os.Stat("/proc/" + pid); pid != "" && err == nil {
					return false
				}
			}
		}
		left, err := filepath.Glob(filepath.Join(f.temporary, "tributary-*"))
		return err == nil && left == nil
	})
	if err := r.lab.InClient(func() error {
		l, err := net.Listen("tcp", port[1])
		if err == nil {
			l.Close()
		}
		return err
	}); err != nil {
		t.Errorf("the port is not free: %v", err)
	}
}

// TestRunNoKey: no file holds the key of the authority, neither while the command runs nor afterwards.
func TestRunNoKey(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(10_000)
	f := r.run("sh", "-c", `curl -sS --fail -o file "$0" && grep -rl 'PRIVATE KEY' "$TMPDIR" "$HOME/.local" ; find "$TMPDIR" -type f; ls -lL /proc/*/fd 2>/dev/null | grep -c memfd`, r.nginx.NamedSecureURL(o))
	f.ended(1, "wifi") // grep finds none
	if got := f.out.String(); strings.Contains(got, "key") || !strings.Contains(got, "ca-0.pem") || !strings.HasSuffix(got, "\n0\n") {
		t.Errorf("files: %s", got)
	}
}

// TestRunOthers: another user of the machine gets 403, whatever the method.
func TestRunOthers(t *testing.T) {
	need(t, "setpriv", "util-linux")
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(10_000)
	f := r.run("sh", "-c", `setpriv --reuid=65534 --regid=65534 --clear-groups curl -sS -o /dev/null -w '%{http_connect} %{http_code}\n' -k "$0"
		setpriv --reuid=65534 --regid=65534 --clear-groups curl -sS -o /dev/null -w '%{http_code}\n' "$1"
		setpriv --reuid=65534 --regid=65534 --clear-groups cat "$SSL_CERT_FILE"; true`, r.nginx.NamedSecureURL(o), r.nginx.NamedURL(o))
	f.ended(0, "the proxy carried nothing", "Permission denied")
	if got := f.out.String(); got != "403 000\n403\n" {
		t.Errorf("another user got %q", got)
	}
}

// TestRunDestinations: a page, a redirect or a name cannot reach destinations that the proxy of the service forbids.
func TestRunDestinations(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{Directives: `
		location = /loopback { return 302 http://127.0.0.1:9/; }
		location = /metadata { return 302 https://169.254.169.254/; }
		location = /plain { return 302 http://$host/file; }`})
	r.offer("file", r.content(10_000))
	base := "https://" + netlab.OriginName
	for _, c := range []struct{ url, want string }{
		{base + "/loopback", "403 200"},
		{base + "/metadata", "000 403"},
		{base + "/plain", "200 200"},
		{"https://localhost:9/", "000 403"},
		{"https://[::1]:9/", "000 403"},
		{"http://2130706433:9/", "403 000"},
		{"https://user:secret@" + netlab.OriginName + "/file", "200 200"},
	} {
		f := r.run("curl", "-sS", "-L", "-g", "--noproxy", "", "-o", "/dev/null", "-w", "%{http_code} %{http_connect}", c.url)
		_ = f.cmd.Wait()
		if got := f.out.String(); got != c.want {
			t.Errorf("%s: %q, want %q: %s", c.url, got, c.want, f.said.String())
		}
	}
}

// TestRunBrowser: a page reaches nothing through the proxy of a running command: not from another site, not by a name
// that resolves to the proxy, and if the browser itself is behind the proxy, nothing on this machine by a name that
// resolves to it.
func TestRunBrowser(t *testing.T) {
	need(t, "chromium", "chromium")
	r := newRig(t, quick(), netlab.NginxOptions{Directives: `
		types { text/html html; text/javascript js; image/svg+xml svg; }
		add_header Access-Control-Allow-Origin *;`})
	page := r.mkdir(r.nginx.Root(), "page")
	const site = "http://" + netlab.OriginName + "/page/"
	r.write(filepath.Join(page, "1.svg"), fmt.Appendf(nil, pageSVG, 11))
	r.write(filepath.Join(page, "sum.js"), []byte("window.ran = true"))
	var victim net.Listener
	if err := r.lab.InClient(func() (err error) {
		victim, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	var accepting sync.WaitGroup
	defer accepting.Wait()
	defer victim.Close()
	accepting.Go(func() {
		for {
			c, err := victim.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	})
	f := r.run("sh", "-c", `echo "$http_proxy."; while [ ! -e done ]; do sleep 0.05; done`)
	f.waitFor(".\n")
	proxy := strings.TrimSuffix(f.out.String(), ".\n")
	port := proxy[strings.LastIndexByte(proxy, ':'):]
	victimPort := fmt.Sprintf(":%d", victim.Addr().(*net.TCPAddr).Port)
	for name, at := range map[string]string{
		"plain": "/page/",
		// the proxy would fetch these if it read more than a path in them
		"whole": proxy + "/" + site, "host": proxy + "//" + netlab.OriginName + "/page/", "path": "http://localhost" + port + "/page/",
		"rebound": "http://" + netlab.ReboundName + victimPort + "/", "loopback": "http://127.0.0.1" + victimPort + "/",
		"tunnel": "https://" + netlab.ReboundName + victimPort + "/", "itself": "http://" + netlab.ReboundName + port + "/page/",
	} {
		r.write(filepath.Join(page, name+".html"), fmt.Appendf(nil, gatewayPage, at))
	}
	features := "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests" // not in every browser
	seesAll := func(b *browser) {
		t.Helper()
		if html := b.load(site + "plain.html"); !strings.Contains(html, "img script link fetch {}") || !strings.Contains(html, " ran.") {
			t.Fatalf("the page works on its own server: %s", html)
		}
	}
	seesNothing := func(b *browser, names ...string) {
		t.Helper()
		for _, name := range names {
			if html := b.load(site + name + ".html"); !strings.Contains(html, "seen: .<") {
				t.Errorf("%s: %s", name, html)
			}
		}
	}
	outside := openBrowser(r, features, "--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP "+netlab.OriginName+" "+netlab.OriginAddr.String())
	seesAll(outside)
	seesNothing(outside, "whole", "host", "path")
	const shown = "this is an HTTP proxy"
	if text := outside.text("rebound.test"+port, "/"+site+"plain.html"); !strings.Contains(text, shown) {
		t.Errorf("a name that leads to the proxy shows %q", text)
	}
	inside := openBrowser(r, features, "--proxy-server="+proxy, "--proxy-bypass-list=<-loopback>")
	seesAll(inside)
	seesNothing(inside, "rebound", "loopback", "tunnel", "itself")
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections reached another program of this machine", n)
	}
	r.write(filepath.Join(f.temporary, "done"), nil)
	f.ended(0)
}

// TestRunPinning: a program that trusts only its own certificates fails once, and works from the second try on, also in
// the next run.
func TestRunPinning(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(2_000_000)
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	pinning := []string{"curl", "-sS", "--fail", "--cacert", cert.CA, "-o", "file", r.nginx.NamedSecureURL(o)}
	f := r.run(append([]string{"--log-level", "debug"}, pinning...)...)
	f.ended(60, "unable to get local issuer", "over one link: "+netlab.OriginName)
	f = r.run(pinning...)
	f.ended(0, "over one link: "+netlab.OriginName+" (curl rejected Tributary's certificate)")
	r.isObject(r.read(filepath.Join(f.temporary, "file")), o)
	if _, err := exec.LookPath("wget"); err == nil { // another program
		f := r.run("wget", "-q", "-O", "file", r.nginx.NamedSecureURL(o))
		f.divided()
	}
	if err := os.Remove(filepath.Join(r.lab.Dir, ".local", "state", "tributary", "pins.json")); err != nil {
		t.Error(err)
	}
	r.run(pinning...).ended(60)
}

// TestRunStore: aria2c verifies with GnuTLS, which reads no variable. Started by its path, without the option that run adds, it works
// over one link, and over all links with --store.
func TestRunStore(t *testing.T) {
	need(t, "aria2c", "aria2")
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(5_000_000)
	path, err := exec.LookPath("aria2c")
	if err != nil {
		t.Fatal(err)
	}
	fetch := []string{path, "-q", "--allow-overwrite=true", "--max-tries=1", "-o", "file", r.nginx.NamedSecureURL(o)}
	f := r.run(fetch...)
	f.ended(0, "over one link: "+netlab.OriginName+" (aria2c verifies with GnuTLS, which reads no variable); --store may help")
	r.isObject(r.read(filepath.Join(f.temporary, "file")), o)
	f = r.run(append([]string{"--store"}, fetch...)...)
	f.divided()
	r.isObject(r.read(filepath.Join(f.temporary, "file")), o)
	r.run(append([]string{"aria2c"}, fetch[1:]...)...).divided()
	r.run("--except", netlab.OriginName, "curl", "-sS", "--fail", "-o", "file", r.nginx.NamedSecureURL(o)).ended(0)
}

// TestRunAlertless: a program that leaves after the handshake, without an alert, has a tunnel at the third attempt. curl does so if
// the key is not the one that its user named; here it is not that of the origin either. In the arguments, the option is seen before.
func TestRunAlertless(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	url := r.nginx.NamedSecureURL(r.object(10_000))
	const key = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	settings := r.file()
	r.write(settings, []byte("pinnedpubkey = "+key+"\n"))
	r.run("curl", "-sS", "--pinnedpubkey", key, "-o", "file", url).ended(90, netlab.OriginName+" (curl wants the server's own key")
	for range 3 {
		r.run("curl", "-sS", "-K", settings, "-o", "file", url).
			ended(90, netlab.OriginName+" (curl left without a request after seeing Tributary's certificate); --store may help")
	}
}

// TestRunClientCertificate: an origin that wants a client certificate gets it.
func TestRunClientCertificate(t *testing.T) {
	need(t, "openssl", "openssl")
	r := newRig(t, quick(), netlab.NginxOptions{})
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	r.nginx.Stop()
	if r.nginx, err = r.lab.StartNginx(r.ctx, netlab.NginxOptions{HTTP: fmt.Sprintf(`server {
		listen 8443 ssl; server_name _; ssl_certificate %s; ssl_certificate_key %s; ssl_verify_client optional_no_ca;
		location / { default_type text/plain; return 200 "$ssl_client_s_dn"; }
	}`, cert.Chain, cert.Key)}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(r.file())
	r.local("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=me", "-keyout", dir+"/key", "-out", dir+"/cert")
	f := r.run("curl", "-sS", "--fail", "--cert", dir+"/cert", "--key", dir+"/key", "https://"+netlab.OriginName+":8443/")
	f.ended(0, "over one link: "+netlab.OriginName+" (the host asks for a client certificate)")
	if got := f.out.String(); got != "CN=me" {
		t.Errorf("the origin saw %q", got)
	}
}

// TestRunBadCertificate: the program sees an invalid certificate itself, and can decide whether to accept it.
func TestRunBadCertificate(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(10_000)
	wrong := strings.Replace(r.nginx.NamedSecureURL(o), netlab.OriginName, "a.b."+netlab.OriginName, 1) // two levels below
	r.run("curl", "-sS", "--fail", wrong).ended(60, "no alternative certificate subject name", "(the host's certificate is not valid)")
	f := r.run("curl", "-sS", "--fail", "-k", "-o", "file", wrong)
	f.ended(0, "(the host's certificate is not valid)")
	r.isObject(r.read(filepath.Join(f.temporary, "file")), o)
}

// TestRunManyHosts: a hundred hosts at once.
func TestRunManyHosts(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(200_000)
	// a busy machine may make one of them too late
	args := []string{"curl", "-sS", "--fail", "--retry", "3", "--parallel", "--parallel-immediate", "--parallel-max", "100"}
	for i := range 100 {
		args = append(args, "-o", fmt.Sprint("file", i), strings.Replace(r.nginx.NamedSecureURL(o), netlab.OriginName, fmt.Sprintf("h%d.%s", i, netlab.OriginName), 1))
	}
	f := r.run(args...)
	f.divided()
	for i := range 100 {
		r.isObject(r.read(filepath.Join(f.temporary, fmt.Sprint("file", i))), o)
	}
}

// TestCA: with intercept = true the service decrypts connections to the authority's hosts, for clients that trust it.
func TestCA(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(5_000_000)
	state := filepath.Join(r.lab.Dir, ".local", "state", "tributary")
	c := r.client(r.options.Binary, "ca", "init", "--hosts", netlab.OriginName)
	r.ok(c)
	config := filepath.Join(r.lab.Dir, "intercept.toml")
	r.write(config, []byte("intercept = true\n"))
	r.options.Args = []string{"--config", config}
	r.serve()
	file := r.file()
	r.overBoth(func() {
		r.ok(r.curl("--fail", "--cacert", filepath.Join(state, "ca.pem"), "-o", file, r.nginx.NamedSecureURL(o)))
	})
	r.isObject(r.read(file), o)
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if c := r.curl("--fail", "--cacert", cert.CA, r.nginx.SecureURL(o)); c.failed != nil { // another host: the origin's address
		t.Errorf("a host that was not named: %s", c.said)
	}
}
