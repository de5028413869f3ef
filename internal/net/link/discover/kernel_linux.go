package discover

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
)

// kernel asks rtnetlink for the state of all interfaces. It belongs to the network namespace that it was opened in.
// Not safe for concurrent use.
type kernel struct {
	h    *netlink.Handle
	mark uint32 // mark of the packets whose routes are looked up
}

func openKernel(mark func() uint32) (*kernel, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	k := &kernel{h: h}
	if mark != nil {
		k.mark = mark()
	}
	return k, nil
}

func (k *kernel) close() { k.h.Close() }

// interfaces takes a snapshot. If the kernel reports that a table changed while it was read, interfaces reads it again.
func (k *kernel) interfaces() (all []Interface, err error) {
	for range 5 {
		if all, err = k.read(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	return all, nil
}

func (k *kernel) read() ([]Interface, error) {
	devs, err := k.h.LinkList()
	if err != nil {
		return nil, err
	}
	all := make([]Interface, 0, len(devs))
	at := map[int]int{} // kernel index -> index in all
	for _, d := range devs {
		at[d.Attrs().Index] = len(all)
		all = append(all, newInterface(d))
	}
	for _, d := range devs {
		if p, ok := at[d.Attrs().ParentIndex]; ok && d.Type() == "vlan" {
			_, skip := all[p].kind()
			all[at[d.Attrs().Index]].ParentReal = skip == ""
		}
	}
	if err := k.readAddrs(all, at); err != nil {
		return nil, err
	}
	if err := k.readRoutes(all, at); err != nil {
		return nil, err
	}
	for _, six := range []bool{false, true} {
		// an error means that there is no way out
		ways, _ := k.ways(six, &netlink.RouteGetOptions{FIBMatch: true, Mark: k.mark})
		for _, index := range ways {
			if i, ok := at[index]; ok && six {
				all[i].World6 = true
			} else if ok {
				all[i].World4 = true
			}
		}
	}
	return all, nil
}

// newInterface returns the kernel's description of a device, without addresses and routes.
func newInterface(d netlink.Link) Interface {
	a := d.Attrs()
	i := Interface{
		Name:  a.Name,
		Index: a.Index,
		Up:    a.Flags&net.FlagUp != 0,
		State: a.OperState.String(),
		Type:  d.Type(),
		Encap: a.EncapType,
	}
	sysfs(&i)
	return i
}

func (k *kernel) readAddrs(all []Interface, at map[int]int) error {
	addrs, err := k.h.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		i, ok := at[a.LinkIndex]
		ip, valid := netip.AddrFromSlice(a.IP)
		if !ok || !valid {
			continue
		}
		tentative := a.Flags&unix.IFA_F_TENTATIVE != 0 && a.Flags&unix.IFA_F_OPTIMISTIC == 0
		bits, _ := a.Mask.Size()
		all[i].Addrs = append(all[i].Addrs, Address{
			Addr:       ip.Unmap(),
			Bits:       bits,
			Unproven:   tentative || a.Flags&unix.IFA_F_DADFAILED != 0,
			Deprecated: a.Flags&unix.IFA_F_DEPRECATED != 0,
		})
	}
	return nil
}

func (k *kernel) readRoutes(all []Interface, at map[int]int) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		// Table 0 means every table; Dst nil means the default route.
		routes, err := k.h.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_DST)
		if err != nil && !unsupported(err) {
			return err
		}
		for _, r := range routes {
			if r.Type != unix.RTN_UNICAST {
				continue
			}
			hops := r.MultiPath
			if len(hops) == 0 {
				hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Flags: r.Flags, Gw: r.Gw}}
			}
			for _, hop := range hops {
				i, ok := at[hop.LinkIndex]
				if !ok || hop.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0 {
					continue
				}
				gateway, _ := netip.AddrFromSlice(hop.Gw)
				all[i].Routes = append(all[i].Routes, Route{
					Gateway:    gateway.Unmap(),
					Six:        family == netlink.FAMILY_V6,
					Metric:     r.Priority,
					Own:        r.Table != unix.RT_TABLE_MAIN,
					SourceOnly: r.Table != unix.RT_TABLE_MAIN && !k.found(family, hop.LinkIndex),
				})
			}
		}
	}
	return nil
}

// found reports whether a packet that names the interface finds a route out.
func (k *kernel) found(family, index int) bool { return k.route(family, index, netip.Addr{}) == nil }

// route looks for a way out through an interface, from an address unless that is the zero Addr.
func (k *kernel) route(family, index int, from netip.Addr) error {
	// Without FIBMatch the kernel assumes that a destination without a route is on-link.
	o := netlink.RouteGetOptions{OifIndex: index, FIBMatch: true, Mark: k.mark}
	if from.IsValid() {
		o.SrcAddr = from.AsSlice()
	}
	ways, err := k.ways(family == netlink.FAMILY_V6, &o)
	if err == nil && !slices.Contains(ways, index) { // for IPv6 the interface is only a preference
		err = unix.ENETUNREACH
	}
	return err
}

// Routed returns an error if a socket that is bound to l finds no way out in any of l's address families.
func Routed(l link.Link) error {
	k, err := openKernel(nil)
	if err != nil {
		return err
	}
	defer k.close()
	err = errors.New("it has no address")
	for _, six := range []bool{false, true} {
		a, ok := l.Addr(six)
		if !ok {
			continue
		}
		family := netlink.FAMILY_V4
		if six {
			family = netlink.FAMILY_V6
		}
		if !l.SourceRouted {
			a = netip.Addr{}
		}
		if err = k.route(family, l.Index, a); err == nil {
			return nil
		}
	}
	return err
}

// Outbound returns the kernel's indexes of the interfaces over which the system itself sends traffic from an address to
// the internet: more than one if routes share the traffic. The zero Addr stands for a program that leaves its address
// open; then IPv6 decides only where IPv4 has no way out. Strict reverse path filtering makes the same decision (RFC
// 3704 section 2.2). Nothing is sent.
func Outbound(from netip.Addr) ([]int, error) {
	k, err := openKernel(nil)
	if err != nil {
		return nil, err
	}
	defer k.close()
	o := netlink.RouteGetOptions{FIBMatch: true}
	if from.IsValid() {
		o.SrcAddr = from.AsSlice()
		return k.ways(from.Is6(), &o)
	}
	if all, err := k.ways(false, &o); err == nil {
		return all, nil
	}
	return k.ways(true, &o)
}

// ways returns the interfaces through which most of the internet is reached. A route to a single host or network, as
// with a split VPN, does not count.
func (k *kernel) ways(six bool, o *netlink.RouteGetOptions) ([]int, error) {
	var failed error
	probes := world(six)
	leads := map[int]int{} // index of an interface -> how many of the probes leave there
	for _, to := range probes {
		routes, err := k.h.RouteGetWithOptions(to, o)
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("look for a route: %w", err))
			continue
		}
		for index := range outOf(routes) {
			leads[index]++
		}
	}
	maps.DeleteFunc(leads, func(_, n int) bool { return 2*n <= len(probes) })
	if len(leads) == 0 {
		return nil, cmp.Or(failed, errNoRoute)
	}
	return slices.Sorted(maps.Keys(leads)), nil
}

// errNoRoute says that the routes to the world lead in different directions.
var errNoRoute = errors.New("look for a route: no interface has a route to most of the internet")

// outOf returns the interfaces of routes.
func outOf(routes []netlink.Route) map[int]bool {
	all := map[int]bool{}
	for _, r := range routes {
		for _, hop := range r.MultiPath {
			all[hop.LinkIndex] = true
		}
		if len(r.MultiPath) == 0 {
			all[r.LinkIndex] = true
		}
	}
	return all
}

// world returns public addresses, far from each other, that stand for all others. Their number is odd, so that one
// answer has the majority. Nothing is sent there.
func world(six bool) []net.IP {
	if six {
		return []net.IP{
			net.ParseIP("2001:4860:4860::8888"), net.ParseIP("2620:0:861:ed1a::1"),
			net.ParseIP("2a00:1450::1"),
		}
	}
	return []net.IP{net.IPv4(8, 8, 8, 8), net.IPv4(91, 198, 174, 192), net.IPv4(193, 0, 14, 129)}
}

// unsupported reports whether the kernel lacks a whole address family.
func unsupported(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

func splitLines(s string) []string { return strings.Split(s, "\n") }
