package netlab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// txQueueLen is the length in packets of the queue between an interface and the emulator: it must hold the packets that
// a server sends while the emulator is not running, since no counter shows its drops.
const txQueueLen = 4000

// prepare sets up the calling thread's namespace, before there are links.
func prepare(congestion string) error {
	settings := [][2]string{
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		{"ipv6/conf/default/accept_ra", "0"},
		{"ipv6/conf/default/router_solicitations", "0"},
		{"ipv6/conf/default/addr_gen_mode", "1"}, // no link-local address
		// one measurement must not pass on its knowledge of the path to the next
		{"ipv4/tcp_no_metrics_save", "1"},
	}
	if congestion != "" {
		settings = append(settings, [2]string{"ipv4/tcp_congestion_control", congestion})
	}
	for _, s := range settings {
		if err := os.WriteFile("/proc/sys/net/"+s[0], []byte(s[1]), 0); err != nil {
			return fmt.Errorf("sysctl net.%s=%s: %w", strings.ReplaceAll(s[0], "/", "."), s[1], err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	return nil
}

// allow puts a congestion control on the machine's list of those that namespaces may use. Only Reno and the one the
// kernel was built with are on it from the start. The list belongs to the whole machine, and other labs may need the
// entry, so it stays.
func allow(congestion string) error {
	const list = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	allowed, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	names := strings.Fields(string(allowed))
	if congestion == "" || slices.Contains(names, congestion) {
		return nil
	}
	if err := os.WriteFile(list, []byte(strings.Join(append(names, congestion), " ")), 0); err != nil {
		return fmt.Errorf("allow namespaces to use %s: %w", congestion, err)
	}
	return nil
}

// addLink makes the two devices of a link, starts its emulator and configures both ends.
func (l *Lab) addLink(index int, spec LinkSpec) error {
	link := &Link{
		Name:  spec.Name,
		Index: index,
		lab:   l,
		down:  spec.Down,
		up:    spec.Up,
	}
	client, err := l.addDevice(l.client, link.Name)
	if err != nil {
		return err
	}
	server, err := l.addDevice(l.server, link.serverName())
	if err != nil {
		return errors.Join(err, unix.Close(client))
	}
	link.emulator, err = newEmulator(client, server, spec.Down, spec.Up, l.Scenario.Seed<<8+uint64(index))
	if err != nil {
		return errors.Join(err, unix.Close(client), unix.Close(server))
	}
	l.links = append(l.links, link)
	l.closers = append(l.closers, func() error { link.emulator.close(); return nil })

	if err := l.server.enter(link.configureServer); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return link.Up()
}

func (l *Lab) addDevice(n *namespace, name string) (fd int, err error) {
	err = n.enter(func() error {
		if fd, err = openTUN(name); err != nil {
			return err
		}
		dev, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetTxQLen(dev, txQueueLen)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), unix.Close(fd))
		}
		return nil
	})
	return fd, err
}

// configureServer sets up the server's end; the first link also brings the origin's addresses.
func (l *Link) configureServer() error {
	dev, err := netlink.LinkByName(l.serverName())
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return err
	}
	if err := netlink.AddrReplace(dev, address(l.addr4(serverHost), 24)); err != nil {
		return err
	}
	if err := netlink.AddrReplace(dev, address(l.addr6(serverHost), 64)); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	for _, addr := range []netip.Addr{OriginAddr, PublicAddr} {
		if err := netlink.AddrReplace(lo, address(addr, 32)); err != nil {
			return err
		}
	}
	return netlink.AddrReplace(lo, address(OriginAddr6, 128))
}

// allowMPTCP lets connections of programs that ask for MPTCP use every link.
func (l *Lab) allowMPTCP() error {
	for _, n := range []*namespace{l.client, l.server} {
		err := n.enter(func() error {
			if err := os.WriteFile("/proc/sys/net/mptcp/enabled", []byte("1"), 0); err != nil {
				return fmt.Errorf("sysctl net.mptcp.enabled=1: %w", err)
			}
			return command("ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8")
		})
		if err != nil {
			return err
		}
	}
	return l.client.enter(func() error {
		for _, link := range l.links[1:] {
			if err := command("ip", "mptcp", "endpoint", "add", link.Addr().String(), "dev", link.Name,
				"subflow"); err != nil {
				return err
			}
		}
		return nil
	})
}

// bindTo returns a net.Dialer's or net.ListenConfig's Control that binds the socket to an interface.
func bindTo(device string) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var bindErr error
		err := c.Control(func(fd uintptr) { bindErr = unix.BindToDevice(int(fd), device) })
		if err = errors.Join(err, bindErr); err != nil {
			return fmt.Errorf("bind to %s: %w", device, err)
		}
		return nil
	}
}
