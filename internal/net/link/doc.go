// Package link opens sockets that use exactly one link of a device.
//
// A host with several links sends everything over the one that its routing table prefers, even if a socket is bound to
// a source address of another link. So each socket is bound to the device itself, including DNS sockets. A bind that
// fails is an error of that link, and never a reason to use another one.
//
// A [Link] is a value that describes one usable link; package discover reports which links exist. A [Path] dials over
// one link and no other. It is the interface between the kinds of links and the packages above: they call [Link.Dial]
// and do not depend on devices. Links that are devices get their Path from [DevicePath]: a [Dialer] combines a
// [Binder], which ties a socket to a link ([Device] does it by SO_BINDTODEVICE), and a [Resolver], which asks the DNS
// servers of one link over that link. [Upstream] is the Path of a link through an upstream proxy. [Destinations]
// decides where connections may lead; [Slots] and [Rates] limit them.
//
// Invariants:
//
//  1. No socket of a Dialer or Resolver is opened without its Binder. The one exception is the local DNS stub, and only
//     if [Resolver.AllLinksAllowed]. Sockets to an upstream proxy are not bound to a link: the system routes them.
//  2. Search domains are never applied and the C library's resolver is never asked.
//
// Concurrency: Link is a value whose slices nobody changes; all other exported types are safe for concurrent use once
// their fields are set. Every goroutine ends with the context or the call that started it. This package reads the
// clock.
//
// Sources: RFC 8305 (connection attempts), RFC 6724 section 5 (selection of source addresses), RFC 6761 section 6.3
// (localhost), RFC 1035 section 4.2.1 (asking again), RFC 6052 and RFC 7050 (NAT64), socket(7), resolv.conf(5), RFC
// 1928 and RFC 1929 (SOCKS5).
//
// It does not judge whether a link works: that is package health. It does not add routes, rules or addresses.
//
// Reasons: docs/decisions/destinations.md, kinds-of-links.md, connection-limits.md, addresses.md.
package link
