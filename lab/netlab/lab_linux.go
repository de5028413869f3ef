package netlab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The origin's addresses; no link owns them.
var (
	OriginAddr  = netip.AddrFrom4([4]byte{10, 78, 0, 1})
	OriginAddr6 = netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x78, 15: 1})
)

// OriginName is the name that the lab's DNS server resolves to the origin's addresses, along with all names below it.
// No stranger can own it, which matters because the addresses are private (RFC 6761 section 6.2).
const OriginName = "origin.test"

// PublicAddr is an address of the origin that belongs to the internet, for the names in PublicNames. It never leaves
// the namespaces.
var PublicAddr = netip.AddrFrom4([4]byte{45, 76, 1, 1})

// PublicNames are names of the internet that lead to PublicAddr in the lab, and for which the origin has a certificate.
// The documentation's commands use them.
var PublicNames = []string{
	"example.com", "pypi.org", "files.pythonhosted.org", "huggingface.co", "deb.debian.org",
	"ghcr.io",
}

const tempPrefix = "tributary-lab-"

// Lab is a client and a server namespace joined by links.
type Lab struct {
	Scenario Scenario
	Dir      string // for files of the run; removed by Close

	client, server *namespace
	routes         *netlink.Handle // of the client namespace
	links          []*Link

	closers   []func() error // in order of creation
	services  sync.WaitGroup // goroutines of nginx and DNS
	closeOnce sync.Once
	closeErr  error

	certOnce sync.Once
	cert     Certificate // valid once certOnce is done, as is certErr
	certErr  error
}

// New sets up a scenario. ctx bounds the set-up only. The caller must Close the lab.
func New(ctx context.Context, sc Scenario) (*Lab, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	if reason := missing(); reason != "" {
		return nil, fmt.Errorf("lab: %s", reason)
	}
	if _, err := Sweep(); err != nil {
		return nil, fmt.Errorf("lab: remove the leftovers of a dead run: %w", err)
	}
	l := &Lab{Scenario: sc}
	if err := l.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: %w", err), l.Close())
	}
	return l, nil
}

func (l *Lab) setUp(ctx context.Context) error {
	if err := l.addNamespaces(); err != nil {
		return err
	}
	if err := l.writeResolvConf(); err != nil {
		return err
	}
	if err := allow(l.Scenario.Congestion); err != nil {
		return err
	}
	for _, n := range []*namespace{l.client, l.server} {
		if err := n.enter(func() error { return prepare(l.Scenario.Congestion) }); err != nil {
			return err
		}
	}
	err := l.client.control(func(fd int) (err error) {
		l.routes, err = netlink.NewHandleAt(netns.NsHandle(fd))
		return err
	})
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	l.closers = append(l.closers, func() error { l.routes.Close(); return nil })
	for i, spec := range l.Scenario.Links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.addLink(i+1, spec); err != nil {
			return fmt.Errorf("link %s: %w", spec.Name, err)
		}
	}
	if l.Scenario.MPTCP {
		return l.allowMPTCP()
	}
	return nil
}

// addNamespaces makes both namespaces under names that no other lab of this process uses.
func (l *Lab) addNamespaces() error {
	suffix := strconv.Itoa(os.Getpid())
	for n := 2; ; n++ {
		err := os.Mkdir(filepath.Join(os.TempDir(), tempPrefix+suffix), 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("temporary directory: %w", err)
		}
		suffix = fmt.Sprintf("%d-%d", os.Getpid(), n)
	}
	l.Dir = filepath.Join(os.TempDir(), tempPrefix+suffix)
	l.closers = append(l.closers, func() error { return os.RemoveAll(l.Dir) })
	for _, side := range []struct {
		to   **namespace
		name string
	}{{&l.client, "tribc-"}, {&l.server, "tribs-"}} {
		n, err := addNamespace(side.name + suffix)
		if err != nil {
			return err
		}
		*side.to = n
		l.closers = append(l.closers, n.remove)
	}
	return nil
}

// writeResolvConf makes the lab's DNS server the only one that programs in the client namespace see.
func (l *Lab) writeResolvConf() error {
	dir := filepath.Join(etcDir, l.client.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("resolv.conf: %w", err)
	}
	l.closers = append(l.closers, func() error { return removeEtc(l.client.name) })
	text := fmt.Sprintf("nameserver %s\noptions timeout:1 attempts:3\n", OriginAddr)
	if err := os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("resolv.conf: %w", err)
	}
	return nil
}

// Close ends everything that runs in the namespaces and removes every trace of the lab. It may be called again.
func (l *Lab) Close() error {
	l.closeOnce.Do(func() {
		var errs []error
		for i := len(l.closers) - 1; i >= 0; i-- {
			errs = append(errs, l.closers[i]())
		}
		l.services.Wait()
		l.closeErr = errors.Join(errs...)
	})
	return l.closeErr
}

// Link returns the link of that name. It panics if there is none: names come from the scenario.
func (l *Lab) Link(name string) *Link {
	for _, link := range l.links {
		if link.Name == name {
			return link
		}
	}
	panic(fmt.Sprintf("lab: scenario %s has no link %q", l.Scenario.Name, name))
}

// Links returns all links in the scenario's order.
func (l *Lab) Links() []*Link { return l.links }

// LinkNames returns the names of all links in the scenario's order.
func (l *Lab) LinkNames() []string {
	var names []string
	for _, link := range l.links {
		names = append(names, link.Name)
	}
	return names
}

// LinksByClient returns the names of all links by the client's address.
func (l *Lab) LinksByClient() map[string]string {
	names := map[string]string{}
	for _, link := range l.links {
		names[link.Addr().String()] = link.Name
	}
	return names
}

// ClientName is the name of the client namespace, for ip netns exec.
func (l *Lab) ClientName() string { return l.client.name }

// ServerName is the name of the server namespace.
func (l *Lab) ServerName() string { return l.server.name }

// CongestionControl is the TCP congestion control in use at the origin, "" if it cannot be read.
func (l *Lab) CongestionControl() string {
	var name []byte
	_ = l.server.enter(func() (err error) {
		name, err = os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
		return err
	})
	return strings.TrimSpace(string(name))
}

// Client returns a command that runs in the client namespace, in a process group of its own. It is killed when ctx ends
// and by Close; the caller still has to Wait for it.
func (l *Lab) Client(ctx context.Context, name string, args ...string) *exec.Cmd {
	return l.client.command(ctx, name, args...)
}

// Server is Client for the server namespace.
func (l *Lab) Server(ctx context.Context, name string, args ...string) *exec.Cmd {
	return l.server.command(ctx, name, args...)
}

func (n *namespace) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	// ip replaces itself with the program, so the command's process is the program's
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.name, name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// InClient runs f in the client namespace. Sockets that f itself opens belong to the namespace permanently; goroutines
// that f starts are not in it.
func (l *Lab) InClient(f func() error) error { return l.client.enter(f) }

// InServer is InClient for the server namespace.
func (l *Lab) InServer(f func() error) error { return l.server.enter(f) }

// DialContext dials in the client namespace, by whatever route.
func (l *Lab) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = l.InClient(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// waitFor waits until something in a namespace accepts TCP connections at addr.
func (n *namespace) waitFor(ctx context.Context, addr string) error {
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		err := n.enter(func() error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens at %s in %s: %w", addr, n.name, err)
		case <-retry.C:
		}
	}
}

// WaitForClient waits until something in the client namespace accepts TCP connections at addr, a literal address.
func (l *Lab) WaitForClient(ctx context.Context, addr string) error {
	return l.client.waitFor(ctx, addr)
}
