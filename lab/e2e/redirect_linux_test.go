package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// nobody is the user of the programs that know nothing of the proxy; root runs the proxy.
const nobody = "65534"

// redirect runs tributary redirect in the client namespace, as root, with the commands of one firewall only.
func (r *rig) redirect(firewall string, args ...string) ran {
	r.Helper()
	path := r.lab.Dir + "/" + firewall
	if _, err := os.Stat(path); err != nil {
		if err := os.Mkdir(path, 0o755); err != nil {
			r.Fatal(err)
		}
		tools := map[string][]string{
			"nftables": {"nft"}, "iptables": {"iptables", "iptables-restore", "ip6tables", "ip6tables-restore"},
		}
		for _, tool := range tools[firewall] {
			real, err := exec.LookPath(tool)
			if err != nil {
				r.Skipf("%s is not installed: apt-get install %s", tool, firewall)
			}
			if err := os.Symlink(real, filepath.Join(path, tool)); err != nil {
				r.Fatal(err)
			}
		}
	}
	socket := "--control=" + r.lab.Dir + "/tributary/control.sock"
	return r.client("env", append([]string{"PATH=" + path, r.options.Binary, "redirect"}, append(args, socket)...)...)
}

// asNobody runs a program that knows nothing of the proxy.
func (r *rig) asNobody(name string, args ...string) ran {
	r.Helper()
	return r.asUser(nobody, name, args...)
}

// asUser runs a program as the user with an ID.
func (r *rig) asUser(id, name string, args ...string) ran {
	r.Helper()
	return r.client("setpriv", append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups", name}, args...)...)
}

// rules returns our rules in the firewalls of the client namespace.
func (r *rig) rules() (found []string) {
	r.Helper()
	for _, list := range [][]string{{"nft", "list", "ruleset"}, {"iptables-save"}, {"ip6tables-save"}} {
		if _, err := exec.LookPath(list[0]); err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(r.client(list[0], list[1:]...).body), "\n") {
			if strings.Contains(strings.ToLower(line), "tributary") {
				found = append(found, line)
			}
		}
	}
	return found
}

// watchdogs returns the processes that keep rules.
func (r *rig) watchdogs() (pids []int) {
	r.Helper()
	out, err := exec.Command("ip", "netns", "pids", r.lab.ClientName()).Output()
	if err != nil {
		r.Fatal(err)
	}
	for pid := range strings.FieldsSeq(string(out)) {
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // it may have ended
		if args := strings.Split(string(line), "\x00"); len(args) > 2 && args[1] == "redirect" {
			var n int
			fmt.Sscan(pid, &n)
			pids = append(pids, n)
		}
	}
	return pids
}

// listen serves a protocol at the origin's address.
func (r *rig) listen(port int, serve func(net.Conn)) {
	r.Helper()
	var l net.Listener
	err := r.lab.InServer(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", netlab.OriginAddr, port))
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
}

// TestRedirect redirects programs that know nothing of the proxy through it.
func TestRedirect(t *testing.T) {
	for _, firewall := range []string{"nftables", "iptables"} {
		t.Run("R153 R157 R165 "+firewall, func(t *testing.T) { testRedirect(t, firewall) })
	}
}

func testRedirect(t *testing.T, firewall string) {
	r := start(t, quick())
	r.listen(2222, func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-lab\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	r.listen(2223, func(c net.Conn) { _, _ = io.Copy(c, c) })
	if said := string(r.ok(r.redirect(firewall, "on", "--port=80,2222,2223")).body); !strings.HasPrefix(said, "redirected by "+firewall) {
		t.Errorf("on says %q", said)
	}
	o := r.object(20_000_000)
	for name, tt := range map[string]struct {
		url  string
		args []string
	}{
		"R154 R159 R166 IPv4": {o.URL, nil},
		"R154 IPv6":           {fmt.Sprintf("http://[%s]/%s", netlab.OriginAddr6, o.Size), nil},
		"R158 the host field names another server": {o.URL, []string{"-H", "Host: 192.0.2.1"}},
		"R159 the host field is a name":            {o.URL, []string{"-H", "Host: elsewhere.lab"}},
	} {
		before := map[string]int64{}
		for _, l := range r.lab.LinkNames() {
			_, before[l] = r.carried(l)
		}
		r.isObject(r.ok(r.asNobody("curl", append([]string{"-sS", "--fail", tt.url}, tt.args...)...)).body, o)
		for _, l := range r.lab.LinkNames() {
			if _, n := r.carried(l); n-before[l] < int64(o.Size)/part {
				t.Errorf("%s: %s carried %d bytes of %d", name, l, n-before[l], o.Size)
			}
		}
	}
	if asked := r.dns.Queries(); len(asked) > 0 {
		t.Errorf("R159: names were asked for: %v", asked)
	}
	// Connections of the proxy's own user are left alone: a proxy without a mark would serve itself.
	before := r.metrics().Received("wifi")
	r.isObject(r.ok(r.client("curl", "-sS", "--fail", o.URL)).body, o)
	if r.metrics().Received("wifi") != before {
		t.Error("R157: a connection of the proxy's own user was redirected")
	}
	for name, tt := range map[string]struct{ port, send, want string }{
		"R162 a server that speaks first": {"2222", "", "SSH-2.0-lab"},
		"R162 another protocol":           {"2223", "hello", "hello"},
	} {
		got := r.asNobody("sh", "-c", fmt.Sprintf("printf '%s' | timeout 10 curl -sS -m 3 telnet://%s:%s", tt.send, netlab.OriginAddr, tt.port))
		if !strings.HasPrefix(string(got.body), tt.want) {
			t.Errorf("%s: got %q, %s", name, got.body, got.said)
		}
	}
	var s struct {
		Redirected bool
		By         string
		IPv6       bool
		Proxy      int `json:"proxy_pid"`
	}
	if err := json.Unmarshal(r.ok(r.redirect(firewall, "status", "--json")).body, &s); err != nil || !s.Redirected || s.By != firewall || !s.IPv6 || s.Proxy == 0 {
		t.Errorf("status: %+v, %v", s, err)
	}
	gone := func(after string) {
		t.Helper()
		r.until("no process keeps rules after "+after, func() bool { return len(r.watchdogs()) == 0 })
		if left := r.rules(); len(left) > 0 {
			t.Errorf("after %s: %q", after, left)
		}
	}

	r.ok(r.redirect(firewall, "on")) // turned on again: the first keeper ends
	r.until("one process keeps rules", func() bool { return len(r.watchdogs()) == 1 })
	r.ok(r.redirect(firewall, "off"))
	gone("redirect off")

	r.ok(r.redirect(firewall, "on"))
	r.stopped = true
	if err := r.proxy.Stop(); err != nil {
		t.Error(err)
	}
	gone("SIGTERM")
	r.isObject(r.ok(r.asNobody("curl", "-sS", "--fail", o.URL)).body, o)

	r.serve()
	r.ok(r.redirect(firewall, "on"))
	r.notToBeHad(r.redirectedTo(firewall), "while the proxy runs")
	r.kill()
	r.until("the keeper sees the proxy's death", func() bool { return len(r.rules()) == 0 })
	gone("kill -9")

	r.serve()
	r.ok(r.redirect(firewall, "on"))
	for _, pid := range r.watchdogs() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	port := r.redirectedTo(firewall)
	r.isObject(r.ok(r.asNobody("curl", "-sS", "--fail", o.URL)).body, o) // without its keeper the proxy still serves
	r.kill()
	if len(r.rules()) == 0 {
		t.Error("there are no rules that nobody keeps")
	}
	r.notToBeHad(port, "after kill -9 of both")
	r.ok(r.redirect(firewall, "off"))
	gone("kill -9 of both and redirect off")
	r.isObject(r.ok(r.asNobody("curl", "-sS", "--fail", o.URL)).body, o)
}

// redirectedTo returns the port that the rules lead to.
func (r *rig) redirectedTo(firewall string) uint16 {
	r.Helper()
	var s struct{ Port uint16 }
	if err := json.Unmarshal(r.ok(r.redirect(firewall, "status", "--json")).body, &s); err != nil || s.Port == 0 {
		r.Fatalf("no port: %+v, %v", s, err)
	}
	return s.Port
}

// notToBeHad fails the test if another user can take the port that rules lead to, and with it all redirected connections.
func (r *rig) notToBeHad(port uint16, when string) {
	r.Helper()
	for _, addr := range []string{"127.0.0.1", "0.0.0.0"} {
		take := fmt.Sprintf("import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((%q, %d))", addr, port)
		if c := r.asNobody("python3", "-c", take); c.failed == nil {
			r.Errorf("R165 %s another user can listen on %s:%d", when, addr, port)
		}
	}
}

// kill kills the program.
func (r *rig) kill() {
	r.Helper()
	if err := r.proxy.Signal(syscall.SIGKILL); err != nil {
		r.Fatal(err)
	}
	_ = r.proxy.Stop() // waits
}
