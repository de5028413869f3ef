// Package netlab connects two real network namespaces, a client and a server, by emulated links, so that integration
// tests and benchmarks can run real programs over links whose rate, delay and failures they choose. It needs root and
// Linux.
//
// A link is a pair of TUN devices, one in each namespace, and an emulator in user space that carries packets between
// the two, so the kernel needs no netem. Each direction has its own [Shape]: rate or recorded trace, delay, jitter,
// loss, drop-tail queue, ramp-up. Every setting can be changed while the link runs.
//
// Addresses: link i (from 1) has 10.77.i.0/24 and fd77:i::/64, the client .2, the server .1. The origin is 10.78.0.1
// and fd78::1, which no link owns, so every link leads to it. The client has a default route over each link, in order
// of preference, and a routing table per source address for programs that bind addresses instead of interfaces.
//
// Invariants:
//
//  1. The links are the only connections of the namespaces; no packet leaves the machine.
//  2. Close removes the namespaces, the processes in them, files and devices, even after a setup that failed halfway.
//     The next New, or Sweep, removes the leftovers of a killed run.
//  3. A link carries unicast packets only, so an unused link counts nothing.
//
// Concurrency: a Lab and its Links are safe for concurrent use. Each link's emulator is one goroutine on a thread of
// its own; model.go is its pure part, which takes the time as an argument.
//
// Units: rates are bits per second here, and only here, because links are specified that way; sizes are bytes on the
// link (IP header included).
package netlab
