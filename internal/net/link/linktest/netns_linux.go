package linktest

import (
	"fmt"
	"io"
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

	"github.com/tributary-http/tributary/internal/core/health"
)

// insideEnv marks the second process that a test runs in, which has its own namespaces.
const insideEnv = "TRIBUTARY_LINK_TEST_INSIDE"

// emulatorEnv holds the words before the name of this program where the kernel cannot run it: `make -C android
// go-test`.
const emulatorEnv = "TRIBUTARY_EMULATOR"

// UnderQEMU says that qemu-user runs the test. It lacks TCP_INFO, so the round trips and counters of connections are
// unknown.
var UnderQEMU = os.Getenv(emulatorEnv) != ""

// Inside reports whether the test runs in a process with a network and mount namespace of its own; if not, it starts
// one that runs only this test, and passes its verdict on. The whole process has to move, since goroutines do not stay
// on one thread. The kernel removes the namespaces with the process, however it ends.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		Must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		Must(t, unix.Mount("sysfs", "/sys", "sysfs", 0, "")) // of this network namespace
		Up(t, "lo")
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	args := append(strings.Fields(os.Getenv(emulatorEnv)), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v",
		"-test.timeout=60s")
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

func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func Dev(t *testing.T, name string) netlink.Link {
	t.Helper()
	d, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func Up(t *testing.T, name string) { t.Helper(); Must(t, netlink.LinkSetUp(Dev(t, name))) }

func Down(t *testing.T, name string) { t.Helper(); Must(t, netlink.LinkSetDown(Dev(t, name))) }

func AddAddr(t *testing.T, name, cidr string) {
	t.Helper()
	Must(t, netlink.AddrAdd(Dev(t, name), ParseCIDR(t, cidr)))
}

func DelAddr(t *testing.T, name, cidr string) {
	t.Helper()
	Must(t, netlink.AddrDel(Dev(t, name), ParseCIDR(t, cidr)))
}

func ParseCIDR(t *testing.T, cidr string) *netlink.Addr {
	t.Helper()
	a, err := netlink.ParseAddr(cidr)
	Must(t, err)
	a.Flags = unix.IFA_F_NODAD
	return a
}

// DefaultRoute describes a default route; an empty via means point-to-point.
func DefaultRoute(t *testing.T, name, via string, metric, table int) *netlink.Route {
	t.Helper()
	r := &netlink.Route{LinkIndex: Dev(t, name).Attrs().Index, Priority: metric, Table: table, Gw: net.ParseIP(via)}
	_, r.Dst, _ = net.ParseCIDR("0.0.0.0/0")
	if strings.Contains(via, ":") {
		_, r.Dst, _ = net.ParseCIDR("::/0")
	}
	return r
}

// Far is a second network namespace, where the servers are. It belongs to one locked thread, which runs f calls.
type Far struct {
	calls chan func()
	wg    sync.WaitGroup
	ns    netns.NsHandle
}

// NewFar makes a namespace that lives until the test ends.
func NewFar(t *testing.T) *Far {
	t.Helper()
	f := &Far{calls: make(chan func())}
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
	Must(t, <-ready)
	t.Cleanup(func() {
		close(f.calls)
		f.wg.Wait()
	})
	f.Do(func() { Up(t, "lo") })
	return f
}

// Do runs call in the namespace.
func (f *Far) Do(call func()) {
	done := make(chan struct{})
	f.calls <- func() { defer close(done); call() }
	<-done
}

// Join makes a veth pair NAME0 (here) and NAME1 (there).
func (f *Far) Join(t *testing.T, name, here, there string) {
	t.Helper()
	Must(t, netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name + "0"}, PeerName: name + "1", PeerNamespace: netlink.NsFd(int(f.ns)),
	}))
	AddAddr(t, name+"0", here)
	f.Do(func() { AddAddr(t, name+"1", there); Up(t, name+"1") })
	Up(t, name+"0")
}

// Greeter accepts connections in the namespace and sends each the address that it comes from.
func (f *Far) Greeter(t *testing.T, at string) {
	t.Helper()
	var l net.Listener
	var err error
	f.Do(func() { l, err = net.Listen("tcp", at) })
	Must(t, err)
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

// Sent returns how many packets an interface has sent.
func Sent(t *testing.T, name string) uint64 {
	t.Helper()
	return Dev(t, name).Attrs().Statistics.TxPackets
}

// Settled returns how many packets an interface has sent, once they include the last ones of connections that ended.
func Settled(t *testing.T, name string) uint64 {
	t.Helper()
	last := Sent(t, name)
	for tick, calm := time.Tick(2*time.Millisecond), 0; calm < 25; calm++ {
		<-tick
		if n := Sent(t, name); n != last {
			last, calm = n, 0
		}
	}
	return last
}

// NoIPv6 keeps interfaces made from now on from sending IPv6 housekeeping, which would move their counters.
func NoIPv6(t *testing.T, f *Far) {
	t.Helper()
	off := func() {
		Must(t, os.WriteFile("/proc/thread-self/root/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o600))
	}
	off()
	f.Do(off)
}

// Origin4 and Origin6 are addresses in the far namespace of TwoLinks, which only its routes lead to.
const (
	Origin4 = "203.0.113.10"
	Origin6 = "2001:db8:f::10"
)

// TwoLinks joins this namespace to a far one by two links; the system prefers a0. Each end has a default route.
func TwoLinks(t *testing.T) *Far {
	t.Helper()
	f := NewFar(t)
	NoIPv6(t, f)
	f.Join(t, "a", "10.1.0.1/24", "10.1.0.2/24")
	f.Join(t, "b", "10.2.0.1/24", "10.2.0.2/24")
	f.Do(func() { AddAddr(t, "lo", Origin4+"/32") })
	Must(t, netlink.RouteAdd(DefaultRoute(t, "a0", "10.1.0.2", 100, 0)))
	Must(t, netlink.RouteAdd(DefaultRoute(t, "b0", "10.2.0.2", 200, 0)))
	return f
}

// FarDNS answers every A question in the far namespace with the origin, over TCP only.
func FarDNS(t *testing.T, f *Far, at string) (s *DNSServer) {
	t.Helper()
	f.Do(func() {
		s = ServeDNS(t, at, func(a Asked) Said {
			if !a.TCP {
				return Said{Truncated: true}
			}
			return Said{Addrs: []netip.Addr{netip.MustParseAddr(Origin4), netip.MustParseAddr(Origin6)}}
		})
	})
	return s
}

// Greeting reads what a Greeter sent on a connection that a Dialer made over a device, and closes it. The socket must
// be bound to the device.
func Greeting(t *testing.T, c net.Conn, device string) string {
	t.Helper()
	defer c.Close()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		t.Fatalf("connection is a %T", c)
	}
	raw, err := tcp.SyscallConn()
	Must(t, err)
	var bound string
	var timeout int
	Must(t, raw.Control(func(fd uintptr) {
		bound, _ = unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
		timeout, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}))
	if UnderQEMU {
		bound = device // qemu-user does not read this option; the far end shows which link it was
	}
	if bound != device || timeout != int(health.GoneAfter.Milliseconds()) {
		t.Errorf("bound to %q, user timeout %d ms", bound, timeout)
	}
	b, err := io.ReadAll(c)
	Must(t, err)
	return string(b)
}
