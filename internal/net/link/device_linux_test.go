package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// greeted dials over l and returns the source address that the origin saw.
func greeted(t *testing.T, l Link, addr string) string {
	t.Helper()
	d := &Dialer{Binder: Device{}, Resolver: &Resolver{Binder: Device{}}}
	c, _, err := d.Dial(t.Context(), l, "tcp", addr)
	Must(t, err)
	return Greeting(t, c, l.Name)
}

func TestDeviceChoosesTheLink(t *testing.T) {
	if !Inside(t) {
		return
	}
	f := TwoLinks(t)
	f.Greeter(t, Origin4+":80")
	dns := FarDNS(t, f, Origin4+":53")
	ls := current(t, dns, "a0", "b0")

	t.Run("R149 R198 R199 over b alone, DNS included", func(t *testing.T) {
		if got := greeted(t, ls[1], "o.test:80"); got != "10.2.0.1" {
			t.Errorf("came from %s", got)
		}
		if n := Sent(t, "a0"); n != 0 {
			t.Errorf("%d packets over a", n)
		}
		// A packet or two may be lost while the veth pair wakes up, so the question may have been repeated.
		for _, tcp := range []bool{false, true} {
			if !slices.Contains(dns.Asks(), Asked{Name: "o.test.", Type: dnsmessage.TypeA, TCP: tcp, EDNS: true}) {
				t.Errorf("asked %v, want the question over UDP and again over TCP", dns.Asks())
			}
		}
	})
	t.Run("over a alone", func(t *testing.T) {
		before := Settled(t, "b0")
		if got := greeted(t, ls[0], "o.test:80"); got != "10.1.0.1" {
			t.Errorf("came from %s", got)
		}
		if n := Sent(t, "b0"); n != before {
			t.Errorf("%d packets over b", n-before)
		}
	})
	t.Run("R121 ten times each", func(t *testing.T) {
		for range 10 {
			for i, want := range []string{"10.1.0.1", "10.2.0.1"} {
				if got := greeted(t, ls[i], Origin4+":80"); got != want {
					t.Errorf("came from %s", got)
				}
			}
		}
	})
	t.Run("R199 a link that is down is no reason to use the other", func(t *testing.T) {
		before := Settled(t, "a0")
		Down(t, "b0")
		_, _, err := (&Dialer{Binder: Device{}, Resolver: &Resolver{Binder: Device{}}}).Dial(t.Context(), ls[1], "tcp", Origin4+":80")
		if de, ok := errors.AsType[*DialError](err); !ok || de.Op != OpConnect {
			t.Errorf("error %v", err)
		}
		if n := Sent(t, "a0"); n != before {
			t.Errorf("%d packets over a", n-before)
		}
	})
	t.Run("R199 an interface that is gone", func(t *testing.T) {
		before := Settled(t, "a0")
		Must(t, netlink.LinkDel(Dev(t, "b0")))
		for _, host := range []string{Origin4, "other.test"} { // the socket to the origin, the one to the DNS server
			_, _, err := (&Dialer{Binder: Device{}, Resolver: &Resolver{Binder: Device{}}}).Dial(t.Context(), ls[1], "tcp", host+":80")
			de, ok := errors.AsType[*DialError](err)
			if !ok || de.Op != OpBind || !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "bind to b0") ||
				!strings.Contains(err.Error(), "the interface is gone") {
				t.Errorf("error %v", err)
			}
		}
		if n := Sent(t, "a0"); n != before {
			t.Errorf("%d packets over a", n-before)
		}
	})
}

// Search domains, the system's servers and /etc/hosts come from real files, mounted over those of the machine.
func TestSystemFiles(t *testing.T) {
	if !Inside(t) {
		return
	}
	f := TwoLinks(t)
	f.Greeter(t, Origin4+":80")
	var dns *DNSServer
	f.Do(func() { dns = ServeDNS(t, Origin4+":53", Always(Said{RCode: dnsmessage.RCodeNameError})) })
	over := func(name, content string) {
		file := filepath.Join(t.TempDir(), "f")
		Must(t, os.WriteFile(file, []byte(content), 0o644))
		Must(t, unix.Mount(file, name, "", unix.MS_BIND, ""))
	}
	over("/etc/hosts", "127.0.0.1 localhost\n"+Origin4+" here here.test\n10.9.9.9 git.example.com\n")
	over("/etc/resolv.conf", "search corp.test\noptions ndots:3\nnameserver "+Origin4+"\n")
	ls := current(t, nil, "a0", "b0")
	r := &Resolver{Binder: Device{}, files: []string{"/etc/resolv.conf"}}

	t.Run("R149 search domains, over the link", func(t *testing.T) {
		if _, err := r.Lookup(t.Context(), ls[1], "ip4", "origin"); err == nil {
			t.Error("found")
		}
		var names []string
		for _, a := range dns.Asks() {
			if a.Type == dnsmessage.TypeA {
				names = append(names, a.Name)
			}
		}
		if want := []string{"origin.corp.test.", "origin."}; !slices.Equal(slices.Compact(names), want) || Sent(t, "a0") != 0 {
			t.Errorf("asked for %v, %d packets over a", names, Sent(t, "a0"))
		}
	})
	t.Run("R149 the hosts file, names without a dot too, with or without a DNS server", func(t *testing.T) {
		before := len(dns.Asks())
		for _, r := range []*Resolver{r, {Binder: Device{}, files: []string{"/dev/null"}}} {
			for _, name := range []string{"here", "HERE.", "here.test", "here.test."} {
				if got, err := r.Lookup(t.Context(), ls[1], "ip", name); err != nil || len(got) != 1 || got[0].String() != Origin4 {
					t.Errorf("%s is %v, %v", name, got, err)
				}
			}
		}
		if n := len(dns.Asks()); n != before {
			t.Errorf("asked %v", dns.Asks()[before:])
		}
	})
	t.Run("R183 a public name that the hosts file points to a private address", func(t *testing.T) {
		var d Destinations
		for addr, want := range map[string]error{"10.9.9.9": nil, "10.9.9.8": ErrRebound} {
			to := netip.AddrPortFrom(netip.MustParseAddr(addr), 80)
			if _, err := d.Check(ls[1], "git.example.com", to); !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("%s: %v, want %v", addr, err, want)
			}
		}
		closed := Destinations{DenyPrivate: true}
		if _, err := closed.Check(ls[1], "git.example.com", netip.MustParseAddrPort("10.9.9.9:80")); !errors.Is(err, ErrDenied) {
			t.Error(err)
		}
	})
}

func TestLocalStub(t *testing.T) {
	if !Inside(t) {
		return
	}
	TwoLinks(t)
	stub := ServeDNS(t, "127.0.0.53:53", Always(Said{Addrs: ips(Origin4)}))
	r := &Resolver{Binder: Device{}, files: files(t, "nameserver 127.0.0.53\n")}
	l := current(t, nil, "b0")[0]
	t.Run("R198 not asked while a link is forbidden", func(t *testing.T) {
		if _, err := r.Lookup(t.Context(), l, "ip4", "o.test"); !errors.Is(err, ErrNoServer) || len(stub.Asks()) > 0 {
			t.Errorf("error %v, asked %v", err, stub.Asks())
		}
	})
	t.Run("asked unbound if every link is allowed", func(t *testing.T) {
		r.AllLinksAllowed = true
		if got, err := r.Lookup(t.Context(), l, "ip4", "o.test"); err != nil || !slices.Equal(got, ips(Origin4)) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// Without any capability, binding works on kernels >= 5.7, but only while the socket is not bound yet.
func TestDeviceUnprivileged(t *testing.T) {
	if !Inside(t) {
		return
	}
	TwoLinks(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread without capabilities ends here
		if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &make([]unix.CapUserData, 2)[0]); err != nil {
			t.Errorf("drop capabilities: %v", err)
			return
		}
		control := Device{}.Control(Link{Name: "b0"})
		lc := net.ListenConfig{Control: control}
		c, err := lc.ListenPacket(context.Background(), "udp4", "10.2.0.1:0")
		if err != nil {
			t.Errorf("bind without privilege: %v", err)
			return
		}
		defer c.Close()
		raw, err := c.(*net.UDPConn).SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		err = Device{}.Control(Link{Name: "a0"})("udp4", "", raw)
		if b, ok := errors.AsType[*BindError](err); !ok || b.Link != "a0" || !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
			t.Errorf("error %v", err)
		}
	}()
	<-done
}

func TestBindErrorText(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EPERM: "bind to wlan0: operation not permitted; grant the capability CAP_NET_RAW (setcap cap_net_raw+ep FILE) " +
			"or use Linux 5.7 or newer",
		syscall.ENODEV: "bind to wlan0: no such device; the interface is gone",
		syscall.EBADF:  "bind to wlan0: bad file descriptor",
	} {
		if got := (&BindError{Link: "wlan0", Err: err}).Error(); got != want {
			t.Errorf("got %q", got)
		}
	}
}

// TestBuffer: the receive buffer is set before the handshake, so it bounds the first window.
func TestBuffer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	defer ln.Close()
	for _, want := range []int{0, 10_000} {
		d := &Dialer{Binder: Device{}, Buffer: func(l Link) int {
			if l.Name != "lo" {
				t.Errorf("asked for %s", l.Name)
			}
			return want
		}}
		d.Resolver = &Resolver{Binder: d.Binder}
		c, _, err := d.Dial(t.Context(), lnk("lo", 1, "127.0.0.1"), "tcp", ln.Addr().String())
		Must(t, err)
		defer c.Close()
		raw, err := c.(*net.TCPConn).SyscallConn()
		Must(t, err)
		var size, fixed int
		var info *unix.TCPInfo
		var errs [3]error
		Must(t, raw.Control(func(fd uintptr) {
			size, errs[0] = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
			info, errs[1] = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if fixed, errs[2] = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK); errs[2] == unix.ENOPROTOOPT {
				fixed, errs[2] = unix.SOCK_RCVBUF_LOCK*min(want, 1), nil // before Linux 5.14
			}
		}))
		Must(t, errors.Join(errs[:]...))
		if want == 0 && fixed != 0 {
			t.Errorf("the buffer is fixed at %d, not left to the kernel", size)
		}
		if want > 0 && (size != 2*want || fixed == 0 || int(info.Rcv_wnd) > 2*want) {
			t.Errorf("a buffer of %d bytes, fixed: %d, and a first window of %d", size, fixed, info.Rcv_wnd)
		}
	}
}

// current returns the links with these names as the kernel has them.
func current(t *testing.T, dns *DNSServer, names ...string) (all []Link) {
	t.Helper()
	for _, n := range names {
		i, err := net.InterfaceByName(n)
		Must(t, err)
		addrs, err := i.Addrs()
		Must(t, err)
		l := Link{Name: n, Index: i.Index, Kind: KindVirtual}
		for _, a := range addrs {
			p := netip.MustParsePrefix(a.String())
			if !p.Addr().IsLinkLocalUnicast() {
				l.Addrs, l.Prefixes = append(l.Addrs, p.Addr()), append(l.Prefixes, p.Masked())
			}
		}
		if dns != nil {
			l.DNS = []netip.AddrPort{dns.Addr}
		}
		all = append(all, l)
	}
	return all
}
