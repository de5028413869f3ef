package netlab

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// start makes a lab that is closed at the test's end.
func start(t testing.TB, sc Scenario) *Lab {
	t.Helper()
	Require(t)
	l, err := New(t.Context(), sc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func twoLinks() Scenario {
	return Scenario{Name: "test", Links: []LinkSpec{
		Symmetric("wifi", 200*Mbit, 4*time.Millisecond),
		Symmetric("lte", 100*Mbit, 10*time.Millisecond),
	}}
}

func serve(t testing.TB, l *Lab) *Nginx {
	t.Helper()
	n, err := l.StartNginx(t.Context(), NginxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// client returns an HTTP client that uses one link and makes a connection per request.
func client(l *Link) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:       l.DialContext,
		DisableKeepAlives: true,
	}}
}

func fetch(ctx context.Context, l *Link, url string) (sum string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := client(l).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	h := sha256.New()
	_, err = io.Copy(h, res.Body)
	return hex.EncodeToString(h.Sum(nil)), err
}

func object(t testing.TB, n *Nginx, size Bytes) Object {
	t.Helper()
	o, err := n.Object(size)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestBytesArriveIntactOverTheBoundLink(t *testing.T) {
	l := start(t, twoLinks())
	n := serve(t, l)
	o := object(t, n, 2_000_000)
	for i, link := range l.Links() {
		if err := l.Settle(t.Context()); err != nil { // lets packets of earlier connections pass
			t.Fatal(err)
		}
		other := l.Links()[1-i]
		_, before, err := other.Counters()
		if err != nil {
			t.Fatal(err)
		}
		sum, err := fetch(t.Context(), link, o.URL)
		if err != nil {
			t.Fatal(err)
		}
		if sum != o.SHA256 {
			t.Errorf("%s: wrong bytes", link.Name)
		}
		down, up, err := link.Counters()
		if err != nil {
			t.Fatal(err)
		}
		if down.Bytes < int64(o.Size) || up.Packets == 0 || down.Delivered == 0 {
			t.Errorf("%s: counted %+v down, %+v up", link.Name, down, up)
		}
		if _, after, _ := other.Counters(); after != before {
			t.Errorf("%s carried packets of %s: %+v", other.Name, link.Name, after)
		}
	}
	var clients []string
	for _, r := range logged(t, n, 2) {
		clients = append(clients, r.Client)
		if r.Method != "GET" || r.Status != 200 || r.Range != "" || r.BytesSent < int64(o.Size) {
			t.Errorf("logged %+v", r)
		}
	}
	if got, want := strings.Join(clients, " "), "10.77.1.2 10.77.2.2"; got != want {
		t.Errorf("requests came from %s, want %s", got, want)
	}
}

// logged waits until nginx has logged the wanted number of requests: nginx writes the line after the last byte.
func logged(t testing.TB, n *Nginx, want int) []Request {
	t.Helper()
	for ctx, tick := t.Context(), time.Tick(5*time.Millisecond); ; {
		requests, err := n.Requests()
		if err != nil {
			t.Fatal(err)
		}
		if len(requests) >= want {
			return requests
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d requests logged, want %d", len(requests), want)
		case <-tick:
		}
	}
}

func TestIPv6(t *testing.T) {
	l := start(t, twoLinks())
	n := serve(t, l)
	o := object(t, n, 10_000)
	for _, link := range l.Links() {
		sum, err := fetch(t.Context(), link, "http://["+OriginAddr6.String()+"]/"+o.Size.String())
		if err != nil || sum != o.SHA256 {
			t.Errorf("%s: %v, sum right: %v", link.Name, err, sum == o.SHA256)
		}
	}
}

func TestSourceAddressChoosesTheLink(t *testing.T) {
	l := start(t, twoLinks())
	n := serve(t, l)
	o := object(t, n, 10_000)
	for _, link := range l.Links() {
		for _, url := range []string{o.URL, "http://[" + OriginAddr6.String() + "]/" + o.Size.String()} {
			source := link.Addr().String()
			if strings.Contains(url, "[") {
				source = link.Addr6().String()
			}
			_, before, _ := link.Counters()
			out, err := l.Client(t.Context(), "curl", "-sS", "--interface", "host!"+source, "-o", "/dev/null", url).CombinedOutput()
			if err != nil {
				t.Fatalf("from %s: %v: %s", source, err, out)
			}
			if _, after, _ := link.Counters(); after.Packets == before.Packets {
				t.Errorf("from %s: %s carried nothing", source, link.Name)
			}
		}
	}
}

// stall fetches over a link while cut and heal happen, and checks that nothing arrives in between. If silent is true, not
// even a packet leaves the link.
func stall(t *testing.T, silent bool, cut, heal func(*Link) error) {
	sc := twoLinks()
	sc.Links[0] = Symmetric("wifi", 20*Mbit, 4*time.Millisecond)
	l := start(t, sc)
	o := object(t, serve(t, l), 2_000_000)
	link := l.Link("wifi")
	res, err := client(link).Get(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	h := sha256.New()
	if _, err := io.CopyN(h, res.Body, 200_000); err != nil {
		t.Fatal(err)
	}
	if err := cut(link); err != nil {
		t.Fatal(err)
	}
	before, _, _ := link.Counters()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := fetch(short, link, o.URL); err == nil {
		t.Error("a new connection got through")
	}
	if after, _, _ := link.Counters(); silent && after.Delivered != before.Delivered {
		t.Errorf("%d packets came through", after.Delivered-before.Delivered)
	}
	if sum, err := fetch(t.Context(), l.Link("lte"), o.URL); err != nil || sum != o.SHA256 {
		t.Errorf("the other link: %v", err)
	}
	if err := heal(link); err != nil {
		t.Fatal(err)
	}
	if sum, err := fetch(t.Context(), link, o.URL); err != nil || sum != o.SHA256 {
		t.Errorf("after the return: %v", err)
	}
	if _, err := io.Copy(h, res.Body); err != nil || hex.EncodeToString(h.Sum(nil)) != o.SHA256 {
		t.Errorf("the old connection: %v", err)
	}
}

func TestBlackhole(t *testing.T) {
	stall(t, true, func(l *Link) error { return l.Blackhole(true) }, func(l *Link) error { return l.Blackhole(false) })
}

func TestDownAndUp(t *testing.T) {
	stall(t, true, (*Link).Down, (*Link).Up)
}

func TestRemoveAndRestoreAddrs(t *testing.T) {
	stall(t, false, (*Link).RemoveAddrs, (*Link).RestoreAddrs)
}

func TestUpRestoresWhatDownTook(t *testing.T) {
	l := start(t, twoLinks())
	state := func() string {
		var all strings.Builder
		for _, args := range [][]string{
			{"-4", "addr"},
			{"-6", "addr"},
			{"-4", "route", "show", "table", "all"},
			{"-6", "route", "show", "table", "all"},
			{"-4", "rule"},
			{"-6", "rule"},
		} {
			out, err := l.Client(t.Context(), "ip", args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			all.Write(out)
		}
		return all.String()
	}
	before := state()
	for name, cycle := range map[string][2]func(*Link) error{
		"interface": {(*Link).Down, (*Link).Up},
		"addresses": {(*Link).RemoveAddrs, (*Link).RestoreAddrs},
	} {
		t.Run(name, func(t *testing.T) {
			for _, step := range cycle {
				if err := step(l.Link("wifi")); err != nil {
					t.Fatal(err)
				}
			}
			if after := state(); !sameLines(before, after) {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

func sameLines(a, b string) bool {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		count[line]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestUpdateWhileRunning(t *testing.T) {
	l := start(t, twoLinks())
	link := l.Link("wifi")
	if err := link.Update(func(down, _ *Shape) { down.Loss = 1 }); err != nil {
		t.Fatal(err)
	}
	o := object(t, serve(t, l), 10_000)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := fetch(short, link, o.URL); err == nil {
		t.Error("a link that loses everything carried an object")
	}
	if down, _, _ := link.Counters(); down.LossDrops == 0 {
		t.Errorf("no loss counted: %+v", down)
	}
	if err := link.Update(func(down, _ *Shape) { down.Rate = 0 }); err == nil {
		t.Error("a rate of 0 is accepted")
	}
	if err := link.Update(func(down, _ *Shape) { down.Loss = 0 }); err != nil {
		t.Fatal(err)
	}
	if sum, err := fetch(t.Context(), link, o.URL); err != nil || sum != o.SHA256 {
		t.Error(err)
	}
}

func TestUnusedLinkCountsNothing(t *testing.T) {
	l := start(t, twoLinks())
	o := object(t, serve(t, l), 10_000)
	if _, err := fetch(t.Context(), l.Link("wifi"), o.URL); err != nil {
		t.Fatal(err)
	}
	if down, up, _ := l.Link("lte").Counters(); down != (Counters{}) || up != (Counters{}) {
		t.Errorf("%+v down, %+v up", down, up)
	}
}

func TestDNS(t *testing.T) {
	l := start(t, twoLinks())
	d, err := l.StartDNS()
	if err != nil {
		t.Fatal(err)
	}
	n := serve(t, l)
	o := object(t, n, 10_000)
	sum := filepath.Join(l.Dir, "out")
	out, err := l.Client(t.Context(), "curl", "-4sS", "-o", sum, n.NamedURL(o)).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v: %s", err, out)
	}
	for _, server := range []string{OriginAddr.String(), OriginAddr6.String(), "link"} {
		for _, network := range []string{"udp", "tcp"} {
			for _, link := range l.Links() {
				address := server
				if server == "link" {
					address = link.addr4(serverHost).String()
				}
				r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return link.DialContext(ctx, network, net.JoinHostPort(address, "53"))
				}}
				for _, family := range []string{"ip4", "ip6"} {
					asked := len(d.Queries())
					ips, err := r.LookupNetIP(t.Context(), family, OriginName)
					want := OriginAddr
					if family == "ip6" {
						want = OriginAddr6
					}
					if err != nil || len(ips) != 1 || ips[0].Unmap() != want {
						t.Errorf("%s over %s at %s: %v, %v", family, link.Name, address, ips, err)
					}
					for _, q := range d.Queries()[asked:] {
						if q.Link != link.Name || q.Network != network || q.Name != OriginName {
							t.Errorf("over %s by %s: logged %+v", link.Name, network, q)
						}
					}
				}
			}
		}
	}
	var missing *net.DNSError
	link := l.Link("lte")
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return link.DialContext(ctx, network, net.JoinHostPort(OriginAddr.String(), "53"))
	}}
	if _, err := r.LookupHost(t.Context(), "other.lab."); !errors.As(err, &missing) || !missing.IsNotFound {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestLimitNeedsBothLinks(t *testing.T) {
	l := start(t, twoLinks())
	o := object(t, serve(t, l), 3_000_000)
	before := make(map[string]int64)
	for _, link := range l.Links() {
		down, _, _ := link.Counters()
		before[link.Name] = down.Bytes
	}
	took, err := l.Limit(t.Context(), o.URL, o.Size, l.Links()...)
	if err != nil {
		t.Fatal(err)
	}
	// 3 MB over 300 Mbit/s cannot take less time than this on any machine
	if bound := 80 * time.Millisecond; took < bound {
		t.Errorf("took %s, less than the links can", took)
	}
	for _, link := range l.Links() {
		if down, _, _ := link.Counters(); down.Bytes == before[link.Name] {
			t.Errorf("%s carried nothing", link.Name)
		}
	}
	if err := l.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, link := range l.Links() {
		if down, up, _ := link.Counters(); down.InFlight+up.InFlight != 0 {
			t.Errorf("%s is not empty after Fresh", link.Name)
		}
	}
}

func TestHTTPS(t *testing.T) {
	l := start(t, twoLinks())
	n := serve(t, l)
	o := object(t, n, 300_000)
	trusted, err := l.trusted()
	if err != nil {
		t.Fatal(err)
	}
	old, err := l.StartNginx(t.Context(), NginxOptions{Port: 8080, TLSPort: 8443, NoHTTP2: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		url, want string
		nginx     *Nginx
		roots     *x509.CertPool
	}{
		{n.SecureURL(o), "HTTP/2.0", n, trusted},
		{old.SecureURL(o), "HTTP/1.1", old, trusted},
		{n.SecureURL(o), "", n, x509.NewCertPool()},
	} {
		transport := &http.Transport{
			DialContext: l.DialContext, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: tt.roots},
		}
		res, err := (&http.Client{Transport: transport}).Get(tt.url)
		if tt.want == "" {
			if err == nil {
				res.Body.Close()
				t.Error("a client that trusts nobody trusts the origin")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		_, err = io.Copy(h, res.Body)
		res.Body.Close()
		transport.CloseIdleConnections()
		if got := hex.EncodeToString(h.Sum(nil)); got != o.SHA256 || err != nil || res.Proto != tt.want {
			t.Errorf("%s: %s, %v, sha256 %s", tt.url, res.Proto, err, got)
		}
		if logged := logged(t, tt.nginx, 1); logged[0].Protocol != tt.want {
			t.Errorf("%s: nginx logged %+v", tt.url, logged[0])
		}
	}
	if _, err := l.Limit(t.Context(), n.SecureURL(o), o.Size, l.Links()...); err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	Require(t)
	l, err := New(t.Context(), twoLinks())
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	child := l.Client(context.Background(), "sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	names := []string{l.client.name, l.server.name}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	for _, path := range []string{
		l.Dir, filepath.Join(netnsDir, names[0]), filepath.Join(netnsDir, names[1]), filepath.Join(etcDir, names[0]),
	} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left", path)
		}
	}
	if err := l.Links()[0].Blackhole(true); !errors.Is(err, errStopped) {
		t.Errorf("a closed link answers %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestFailedSetUpLeavesNothing(t *testing.T) {
	Require(t)
	own := func() []string { // other namespaces on this machine come and go
		names, err := filepath.Glob(filepath.Join(netnsDir, fmt.Sprintf("trib?-%d*", os.Getpid())))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	before := own()
	sc := twoLinks()
	sc.Congestion = "no-such-algorithm"
	if l, err := New(t.Context(), sc); err == nil {
		l.Close()
		t.Fatal("an unknown congestion control is accepted")
	}
	if after := own(); !slices.Equal(after, before) {
		t.Errorf("namespaces before %v, after %v", before, after)
	}
}

func TestSweep(t *testing.T) {
	Require(t)
	gone := deadPid(t)
	names := []string{fmt.Sprintf("tribc-%d", gone), fmt.Sprintf("tribs-%d-2", gone)}
	for _, name := range names {
		if err := command("ip", "netns", "add", name); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("%s%d", tempPrefix, gone))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	alive := start(t, twoLinks()) // New sweeps
	for _, path := range []string{dir, filepath.Join(netnsDir, names[0]), filepath.Join(netnsDir, names[1])} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left", path)
		}
	}
	if swept, err := Sweep(); err != nil || len(swept) > 0 {
		t.Errorf("swept %v, %v", swept, err)
	}
	if _, err := os.Stat(filepath.Join(netnsDir, alive.client.name)); err != nil {
		t.Error("a living lab was swept")
	}
}

// TestSweepTogether: tests of several packages sweep at the same time, in separate processes.
func TestSweepTogether(t *testing.T) {
	Require(t)
	gone := deadPid(t)
	for i := range 8 {
		if err := command("ip", "netns", "add", fmt.Sprintf("tribs-%d-%d", gone, i)); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := Sweep(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// deadPid returns the process ID of a dead process.
func deadPid(t *testing.T) int {
	t.Helper()
	for pid := 4_000_000; pid > 3_000_000; pid-- {
		if unix.Kill(pid, 0) == unix.ESRCH {
			return pid
		}
	}
	t.Fatal("no free process number")
	return 0
}

func TestScenariosLoad(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scenarios/*.toml")
	if err != nil || len(files) < 9 {
		t.Fatalf("scenarios: %v, %v", files, err)
	}
	for _, f := range files {
		if _, err := Load(f); err != nil {
			t.Error(err)
		}
	}
}
