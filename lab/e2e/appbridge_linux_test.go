package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link/appbridge/appbridgetest"
	"github.com/tributary-http/tributary/lab/netlab"
)

// appUser is the user ID of an app: it has no capability, and the routing rules give it no link.
const appUser = 10123

// anotherApp is the user ID of an app that downloads.
const anotherApp = "10200"

// firstNet is the netId of the first link; the others follow.
const firstNet = 100

// android gives the client namespace the routing rules of Android's netd: packets without a mark go out over the first
// link, packets with a network's mark over that network. Root may bind to every interface. Other users may bind to the
// first link; the other links are background networks, like mobile data beside Wi-Fi, and require a mark with netd's
// PERMISSION_NETWORK.
func (r *rig) android() {
	r.Helper()
	ip := func(args ...string) {
		r.Helper()
		r.ok(r.client("ip", args...))
	}
	for i, l := range r.lab.Links() {
		table := fmt.Sprint(1000 + l.Index)
		for _, family := range []struct{ option, own string }{{"-4", l.Addr().String()}, {"-6", l.Addr6().String()}} {
			ip(family.option, "route", "del", "default", "dev", l.Name)
			ip(family.option, "rule", "del", "from", family.own)
			ip(family.option, "rule", "add", "pref", "11000", "iif", "lo", "oif", l.Name, "uidrange", "0-0", "lookup", table)
			ip(family.option, "rule", "add", "pref", "16000", "fwmark", fmt.Sprintf("%#x/0x1ffff", 0x10000|firstNet+i), "iif", "lo", "lookup", table)
			permission := "0/0"
			if i > 0 {
				permission = "0x40000/0x40000"
			}
			ip(family.option, "rule", "add", "pref", "17000", "fwmark", permission, "iif", "lo", "oif", l.Name, "lookup", table)
			if i == 0 {
				ip(family.option, "rule", "add", "pref", "31000", "fwmark", "0/0xffff", "iif", "lo", "lookup", table)
			}
		}
	}
	ip("-4", "rule", "add", "pref", "32000", "unreachable")
	ip("-6", "rule", "add", "pref", "32000", "unreachable")
}

// phone is an app with the links of a lab.
type phone struct {
	*appbridgetest.App
	r       *rig
	refuse  atomic.Pointer[string] // the name of a link that may not be used
	looked  chan string            // "name over link"
	wanted  chan bool              // mobile data
	monthly int64                  // bytes that all links except wifi may carry together; 0 = no limit
	metered map[string]bool        // links, by name
	apps    string                 // apps that may use metered links: "" = "all"
	updates atomic.Int64           // number of statuses received
}

// newPhone returns an app that has started the program.
func newPhone(r *rig, monthly int64, links ...string) *phone {
	r.Helper()
	p := &phone{monthly: monthly}
	p.start(r, links...)
	return p
}

// start starts the program under the app.
func (p *phone) start(r *rig, links ...string) {
	r.Helper()
	p.App, p.r, p.looked, p.wanted = &appbridgetest.App{}, r, make(chan string, 64), make(chan bool, 64)
	p.Bind = func(handle uint64, fd int) unix.Errno {
		name := r.lab.LinkNames()[handle-firstNet]
		if no := p.refuse.Load(); no != nil && *no == name {
			return unix.EPERM
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(0x30000|handle)); err != nil {
			r.Errorf("mark a socket of the program: %v", err)
			return unix.EINVAL
		}
		return 0
	}
	dir, err := os.MkdirTemp(r.lab.Dir, "app-")
	if err != nil {
		r.Fatal(err)
	}
	p.Listen(r, filepath.Join(dir, "socket"))
	for _, path := range []string{dir, p.Path} {
		if err := os.Chown(path, appUser, appUser); err != nil {
			r.Fatal(err)
		}
	}
	go p.answer()
	r.options.UID = appUser
	r.options.Args = append(r.options.Args, "--app-socket", p.Path, "--allow-users", "all")
	r.serve()
	p.show(links...)
	r.until("the links are used", func() bool { return strings.Count(r.proxy.Said(), `"link found"`) >= len(links) })
}

// answer answers the program's requests.
func (p *phone) answer() {
	for m := range p.Heard {
		switch m["type"] {
		case "resolve":
			handle := uint64(m["handle"].(float64))
			p.looked <- fmt.Sprintf("%s over %s", m["name"], p.r.lab.LinkNames()[handle-firstNet])
			if m["name"] == netlab.OriginName {
				p.Say(`{"type":"resolved","id":%v,"addrs":["%s"]}`, m["id"], netlab.OriginAddr)
			} else {
				p.Say(`{"type":"resolved","id":%v,"error":"not_found"}`, m["id"])
			}
		case "want":
			p.wanted <- m["cellular"].(bool)
		case "status":
			if _, ok := m["status"].(map[string]any)["links"]; ok {
				p.updates.Add(1)
			}
		}
	}
}

// show sends the list of links to the program.
func (p *phone) show(names ...string) {
	var all []string
	for _, name := range names {
		l := p.r.lab.Link(name)
		account := ""
		if p.monthly > 0 && name != "wifi" {
			account = `,"account":"cellular"`
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"handle":%d,"kind":"wifi","addrs":["%s","%s"],"validated":true,"metered":%v%s}`,
			name, firstNet+l.Index-1, netip.PrefixFrom(l.Addr(), 24), netip.PrefixFrom(l.Addr6(), 64), p.metered[name], account))
	}
	p.Say(`{"type":"links","links":[%s],"accounts":[{"name":"cellular","monthly_bytes":%d}],"cellular":"cellular","apps":{"metered":%q}}`,
		strings.Join(all, ","), p.monthly, cmp.Or(p.apps, "all"))
}

// TestAppBridge runs the program as an app's child: without any capability, under the routing rules of a phone.
func TestAppBridge(t *testing.T) {
	sc := quick()
	sc.Links = append(sc.Links, netlab.Symmetric("other", 40*netlab.Mbit, 30*time.Millisecond))
	r := newRig(t, sc, netlab.NginxOptions{})
	r.android()
	o := r.object(5_000_000)
	p := newPhone(r, 0, "wifi", "lte")
	size := int64(o.Size)
	used := func(f func()) map[string]int64 {
		t.Helper()
		before, after := map[string]int64{}, map[string]int64{}
		for _, l := range r.lab.LinkNames() {
			_, before[l] = r.carried(l)
		}
		f()
		r.settle()
		for _, l := range r.lab.LinkNames() {
			_, n := r.carried(l)
			after[l] = n - before[l]
		}
		return after
	}

	n := used(func() { r.download(r.nginx.NamedURL(o), o) })
	if n["wifi"] < size/part || n["lte"] < size/part || n["other"] != 0 {
		t.Errorf("both links: carried %v of %d", n, size)
	}
	r.isObject(r.ok(r.asUser(anotherApp, "curl", "-sS", "--fail", "-x", proxyURL, o.URL)).body, o)
	asked := map[string]bool{}
	for len(p.looked) > 0 {
		asked[<-p.looked] = true
	}
	if !asked[netlab.OriginName+" over wifi"] || !asked[netlab.OriginName+" over lte"] || len(asked) != 2 || len(r.dns.Queries()) > 0 {
		t.Errorf("names: the app was asked for %v, the name server for %v", asked, r.dns.Queries())
	}
	select {
	case want := <-p.wanted:
		if !want {
			t.Error("mobile data is not wanted")
		}
	case <-r.ctx.Done():
		t.Error("mobile data is never asked for")
	}
	if p.updates.Load() == 0 {
		t.Error("no status came")
	}
	if c := r.curl("http://nowhere.lab/"); !strings.Contains(string(c.body), "host name") {
		t.Errorf("a name that does not exist: %q", c.body)
	}

	// An app cannot revoke kept connections: they end with the link.
	lte := "lte"
	lose := func(times int) {
		t.Helper()
		p.show("wifi")
		r.until("lte is lost", func() bool { return strings.Count(r.proxy.Said(), `"link lost"`) == times })
		r.settle() // its connections end
	}
	lose(1)
	p.refuse.Store(&lte)
	p.show("wifi", "lte")
	r.until("lte is found again", func() bool { return strings.Count(r.proxy.Said(), `"link found"`) == 3 })
	n = used(func() { r.download(r.nginx.NamedURL(o), o) })
	if n["wifi"] < size || n["lte"] != 0 || n["other"] != 0 {
		t.Errorf("lte is refused: carried %v of %d", n, size)
	}
	p.refuse.Store(nil)

	lose(2)
	n = used(func() { r.download(r.nginx.NamedURL(o), o) })
	if n["wifi"] < size || n["lte"] != 0 || n["other"] != 0 {
		t.Errorf("wifi alone: carried %v of %d", n, size)
	}

	r.stopped = true
	p.HangUp()
	if code, err := r.proxy.Wait(r.ctx); code != 0 || err != nil {
		t.Errorf("without its host it ends with code %d, %v", code, err)
	}
}

// TestRooted runs the program as the module does, and as root, under the routing rules of a phone, where the main table
// leads nowhere: the program finds the links itself, and serves redirected connections.
func TestRooted(t *testing.T) {
	for _, user := range []string{"", "8080"} {
		t.Run("user "+user, func(t *testing.T) {
			r := newRig(t, quick(), netlab.NginxOptions{})
			r.android()
			if user != "" {
				r.as(user)
			}
			r.serve()
			if user != "" {
				r.keepsTwoCapabilities(user)
			}
			r.ok(r.redirect("iptables", "on", "--user=10000-19999"))
			o := r.object(5_000_000)
			for _, url := range []string{o.URL, fmt.Sprintf("http://[%s]/%s", netlab.OriginAddr6, o.Size)} {
				before := map[string]int64{}
				for _, l := range r.lab.LinkNames() {
					_, before[l] = r.carried(l)
				}
				r.isObject(r.ok(r.asUser(anotherApp, "curl", "-sS", "--fail", url)).body, o)
				for _, l := range r.lab.LinkNames() {
					if _, n := r.carried(l); n-before[l] < int64(o.Size)/part {
						t.Errorf("%s: %s carried %d bytes of %d", url, l, n-before[l], o.Size)
					}
				}
			}
		})
	}
}

// as makes the program start as root and switch to a user that may create its control socket.
func (r *rig) as(user string) {
	r.Helper()
	id, err := strconv.Atoi(user)
	if err != nil {
		r.Fatal(err)
	}
	run, file := filepath.Join(r.lab.Dir, "tributary"), filepath.Join(r.lab.Dir, "user.toml")
	control := filepath.Join(run, "control.sock")
	if err := errors.Join(
		os.Mkdir(run, 0o700), os.Chown(run, id, id), os.WriteFile(file, fmt.Appendf(nil, "control = %q\n", control), 0o644),
	); err != nil {
		r.Fatal(err)
	}
	r.options.Args = append(r.options.Args, "--user="+user, "--config="+file)
}

// keepsTwoCapabilities checks every thread of the program.
func (r *rig) keepsTwoCapabilities(user string) {
	r.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.proxy.PID()))
	if err != nil || len(threads) < 2 {
		r.Fatalf("%v, %v: a Go program has several threads", threads, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			r.Fatal(err)
		}
		said := strings.Join(strings.Fields(string(text)), " ")
		for _, want := range []string{
			strings.TrimSpace("Uid: " + strings.Repeat(user+" ", 4)), strings.TrimSpace("Gid: " + strings.Repeat(user+" ", 4)),
			"CapPrm: 0000000000003000", "CapEff: 0000000000003000", "NoNewPrivs: 1",
		} {
			if !strings.Contains(said, want) {
				r.Errorf("no %q in %s", want, said)
			}
		}
	}
}

// pipes are a program's standard output and input.
type pipes struct {
	io.Reader
	io.Writer
}

// monthLimit is the number of bytes that a javaHost lets mobile data carry in a month.
const monthLimit = 1_000_000_000

// javaApp is the app's core in a JVM, in the place of the real app: it starts the program and sends it the links that the
// app offers.
type javaApp struct {
	Spent  int64             // bytes of monthLimit that mobile data has carried today
	Traits map[string]string // traits of each link according to the app's system
	Props  []string          // "name=value", see HostMain
	URL    string            // URL of the object to download through the program, to File
	File   string

	said *said
}

// said is the output of a program.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

const (
	javaProxy   = "127.0.0.1:18080"
	javaGateway = "127.0.0.1:18081"
)

// startJava starts the app. TRIBUTARY_JAVA is the class path; make android-test sets it. wait waits for its end, which
// must be successful.
func (r *rig) startJava(a *javaApp) (wait func()) {
	r.Helper()
	classes := os.Getenv("TRIBUTARY_JAVA")
	if classes == "" {
		r.Skip("the app's classes are not built: make android-test")
	}
	dir, err := os.MkdirTemp(r.lab.Dir, "app-")
	if err != nil {
		r.Fatal(err)
	}
	ledger := fmt.Appendf(nil, `{"version":2,"day":%q,"spent":{"cellular":{%[1]q:%d}}}`, time.Now().Format(time.DateOnly), a.Spent)
	if err := os.WriteFile(filepath.Join(dir, "allowance.json"), ledger, 0o600); err != nil {
		r.Fatal(err)
	}
	var networks []string
	for i, l := range r.lab.Links() {
		kind := map[string]string{"wifi": "WIFI", "lte": "CELLULAR", "other": "WIFI"}[l.Name]
		networks = append(networks, fmt.Sprintf("%d,%s,%s,%s,%s", firstNet+i, l.Name, kind, netip.PrefixFrom(l.Addr(), 24), a.Traits[l.Name]))
	}
	id := fmt.Sprint(appUser)
	args := []string{fmt.Sprintf("-Dmonth=%d", monthLimit)}
	for _, p := range a.Props {
		args = append(args, "-D"+p)
	}
	args = append(args,
		"-cp", classes, "io.github.tributary.core.HostMain", dir, "18080", a.URL, a.File, netlab.OriginAddr.String(), strings.Join(networks, ";"),
		"setpriv", "--reuid="+id, "--regid="+id, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
		r.options.Binary, "serve", "--listen", javaProxy, "--admin", "", "--allow-users", "all", "--gateway", javaGateway,
		"--log-level", "debug", "--app-socket", dir+"/socket",
	)
	java := r.lab.Client(r.ctx, "java", args...)
	java.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "STATE_DIRECTORY="+dir, "RUNTIME_DIRECTORY="+dir)
	in, err := java.StdinPipe()
	if err != nil {
		r.Fatal(err)
	}
	out, err := java.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	a.said = &said{}
	java.Stderr = a.said
	app := &appbridgetest.App{Relay: pipes{out, in}, Bind: func(handle uint64, fd int) unix.Errno {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(0x30000|handle)); err != nil {
			r.Errorf("mark a socket of the program: %v", err)
		}
		return 0
	}}
	app.Listen(r, dir+"/socket")
	for _, path := range []string{dir, app.Path, filepath.Join(dir, "allowance.json")} {
		if err := os.Chown(path, appUser, appUser); err != nil {
			r.Fatal(err)
		}
	}
	if err := java.Start(); err != nil {
		r.Fatal(err)
	}
	return func() {
		r.Helper()
		err := java.Wait()
		log, _ := os.ReadFile(dir + "/log")
		if said := a.said.String(); err != nil || !strings.Contains(said, "done") || strings.Contains(said, "died") {
			r.Errorf("%v: the app says\n%s\nthe program\n%s", err, said, log)
		}
		r.withoutSecrets(a, string(log))
	}
}

// withoutSecrets checks that the program's log has no link of a relay.
func (r *rig) withoutSecrets(a *javaApp, log string) {
	r.Helper()
	for _, p := range a.Props {
		if link, ok := strings.CutPrefix(p, "link="); ok && strings.Contains(log, link[strings.LastIndexByte(link, '.')+1:]) {
			r.Error("the log has the token of a relay")
		}
	}
}

// javaHost downloads an object through an app, and returns the app's output.
func (r *rig) javaHost(o netlab.Object, spent int64, traits map[string]string) string {
	r.Helper()
	a := &javaApp{Spent: spent, Traits: traits, URL: r.nginx.NamedURL(o), File: r.file()}
	r.startJava(a)()
	r.isObject(r.read(a.File), o)
	return a.said.String()
}

// whileJava runs do while the app and the program run.
func (r *rig) whileJava(a *javaApp, do func()) {
	r.Helper()
	over := r.file()
	a.Props = append(a.Props, "while="+over)
	wait := r.startJava(a)
	r.until("the program runs", func() bool { return strings.Contains(a.said.String(), "status: ") })
	func() {
		defer r.write(over, nil)
		do()
	}()
	wait()
}

// TestJavaHost: two of three links carry a download, since the third does not lead to the internet.
func TestJavaHost(t *testing.T) {
	sc := quick()
	sc.Links = append(sc.Links, netlab.Symmetric("other", 40*netlab.Mbit, 30*time.Millisecond))
	r := newRig(t, sc, netlab.NginxOptions{})
	r.android()
	o := r.object(20_000_000)
	said := r.javaHost(o, 0, map[string]string{"wifi": "VALIDATED", "lte": "VALIDATED METERED", "other": "CAPTIVE"})
	for _, l := range r.lab.LinkNames() {
		_, n := r.carried(l)
		t.Logf("%s carried %d bytes of %d", l, n, o.Size)
		if share := float64(n) / float64(o.Size); l == "other" && n != 0 || l != "other" && share < 0.2 {
			t.Errorf("%s carried %d bytes of %d", l, n, o.Size)
		}
	}
	if !strings.Contains(said, "wanted: true") {
		t.Errorf("mobile data is never asked for:\n%s", said)
	}
}

// TestJavaHostSpendsNothing: no packet leaves over a link that the user has not agreed to, and mobile data is not
// requested when its allowance is used up.
func TestJavaHostSpendsNothing(t *testing.T) {
	for name, row := range map[string]struct {
		spent  int64
		traits map[string]string
		wanted bool
	}{
		"roaming":     {0, map[string]string{"wifi": "VALIDATED", "lte": "VALIDATED METERED ROAMING"}, true},
		"blocked":     {0, map[string]string{"wifi": "VALIDATED", "lte": "VALIDATED METERED BLOCKED"}, true},
		"limit spent": {monthLimit, map[string]string{"wifi": "VALIDATED", "lte": "CAPTIVE METERED"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, quick(), netlab.NginxOptions{})
			r.android()
			before, _ := r.carried("lte")
			said := r.javaHost(r.object(5_000_000), row.spent, row.traits)
			if packets, size := r.carried("lte"); packets != before {
				t.Errorf("mobile data carried %d packets; %d bytes in all", packets-before, size)
			}
			if got := strings.Contains(said, "wanted: true"); got != row.wanted {
				t.Errorf("mobile data is asked for: %v\n%s", got, said)
			}
		})
	}
}
