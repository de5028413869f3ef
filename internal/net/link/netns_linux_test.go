package link

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// insideEnv marks the second process that a test runs in, which has its own namespaces.
const insideEnv = "TRIBUTARY_LINK_TEST_INSIDE"

// emulatorEnv holds the words before the name of this program where the kernel cannot run it: `make -C android go-test`.
const emulatorEnv = "TRIBUTARY_EMULATOR"

// underQEMU says that qemu-user runs the test. It lacks TCP_INFO, so the round trips and counters of connections are unknown.
var underQEMU = os.Getenv(emulatorEnv) != ""

// inside reports whether the test runs in a process with a network and mount namespace of its own; if not, it starts one that runs
// only this test, and passes its verdict on. The whole process has to move, since goroutines do not stay on one thread. The kernel
// removes the namespaces with the process, however it ends.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		must(t, unix.Mount("sysfs", "/sys", "sysfs", 0, "")) // of this network namespace
		up(t, "lo")
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	args := append(strings.Fields(os.Getenv(emulatorEnv)), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	runtime.LockOSThread() // Pdeathsig follows the thread
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("in namespaces: %v\n%s", err, out)
	} else {
		t.Logf("in namespaces:\n%s", out)
	}
	return false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dev(t *testing.T, name string) netlink.Link {
	t.Helper()
	d, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func up(t *testing.T, name string) { t.Helper(); must(t, netlink.LinkSetUp(dev(t, name))) }

func down(t *testing.T, name string) { t.Helper(); must(t, netlink.LinkSetDown(dev(t, name))) }

func addAddr(t *testing.T, name, cidr string) {
	t.Helper()
	must(t, netlink.AddrAdd(dev(t, name), parseCIDR(t, cidr)))
}

func delAddr(t *testing.T, name, cidr string) {
	t.Helper()
	must(t, netlink.AddrDel(dev(t, name), parseCIDR(t, cidr)))
}

func parseCIDR(t *testing.T, cidr string) *netlink.Addr {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	must(t, err)
	a.Flags = unix.IFA_F_NODAD
	return a
}

// defaultRoute describes a default route; an empty via means point-to-point.
func defaultRoute(t *testing.T, name, via string, metric, table int) *netlink.Route {
	t.Helper()
	r := &netlink.Route{LinkIndex: dev(t, name).Attrs().Index, Priority: metric, Table: table, Gw: net.ParseIP(via)}
	_, r.Dst, _ = net.ParseCIDR("0.0.0.0/0")
	if strings.Contains(via, ":") {
		_, r.Dst, _ = net.ParseCIDR("::/0")
	}
	return r
}

// far is a second network namespace, where the servers are. It belongs to one locked thread, which runs f calls.
type far struct {
	calls chan func()
	wg    sync.WaitGroup
	ns    netns.NsHandle
}

// newFar makes a namespace that lives until the test ends.
func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{calls: make(chan func())}
	ready := make(chan error)
	f.wg.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine and takes the namespace along
		var err error
		f.ns, err = netns.New()
		ready <- err
		for call := range f.calls {
			call()
		}
		f.ns.Close()
	})
	must(t, <-ready)
	t.Cleanup(func() {
		close(f.calls)
		f.wg.Wait()
	})
	f.do(func() { up(t, "lo") })
	return f
}

// do runs call in the namespace.
func (f *far) do(call func()) {
	done := make(chan struct{})
	f.calls <- func() { defer close(done); call() }
	<-done
}

// join makes a veth pair NAME0 (here) and NAME1 (there).
func (f *far) join(t *testing.T, name, here, there string) {
	t.Helper()
	must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name + "0"}, PeerName: name + "1", PeerNamespace: netlink.NsFd(int(f.ns)),
	}))
	addAddr(t, name+"0", here)
	f.do(func() { addAddr(t, name+"1", there); up(t, name+"1") })
	up(t, name+"0")
}

// greeter accepts connections in the namespace and sends each the address that it comes from.
func (f *far) greeter(t *testing.T, at string) {
	t.Helper()
	var l net.Listener
	var err error
	f.do(func() { l, err = net.Listen("tcp", at) })
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
}

// sent returns how many packets an interface has sent.
func sent(t *testing.T, name string) uint64 {
	t.Helper()
	return dev(t, name).Attrs().Statistics.TxPackets
}

// settled returns how many packets an interface has sent, once they include the last ones of connections that ended.
func settled(t *testing.T, name string) uint64 {
	t.Helper()
	last := sent(t, name)
	for tick, calm := time.Tick(2*time.Millisecond), 0; calm < 25; calm++ {
		<-tick
		if n := sent(t, name); n != last {
			last, calm = n, 0
		}
	}
	return last
}

// noIPv6 keeps interfaces made from now on from sending IPv6 housekeeping, which would move their counters.
func noIPv6(t *testing.T, f *far) {
	t.Helper()
	off := func() {
		must(t, os.WriteFile("/proc/thread-self/root/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o600))
	}
	off()
	f.do(off)
}

// current returns the links with these names as the kernel has them.
func current(t *testing.T, dns *dnsServer, names ...string) []Link {
	t.Helper()
	o := Options{Names: names, DNS: map[string][]netip.AddrPort{}}
	for _, n := range names {
		if dns != nil {
			o.DNS[n] = []netip.AddrPort{dns.addr}
		}
	}
	cs, err := (&Netlink{Options: o}).List()
	must(t, err)
	var ls []Link
	for _, n := range names {
		for _, c := range cs {
			if c.Link.Name == n && c.Use {
				ls = append(ls, c.Link)
			}
		}
	}
	if len(ls) != len(names) {
		t.Fatalf("want links %v, have %+v", names, cs)
	}
	return ls
}
