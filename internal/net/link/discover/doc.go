// Package discover finds the links of a device.
//
// A [Source] reports which links exist: [Netlink] asks the Linux kernel, [Static] has a fixed list, and [Merge] joins
// several sources. [WithPaths] gives links the way to dial over them. [Kernel] looks up the system's own routes.
//
// Invariants:
//
//  1. Nothing else in Tributary lists interfaces. Kernel events only mean "look again"; the truth is a snapshot, and
//     changes are found by a pure comparison of two snapshots ([Diff]).
//  2. A lost link is reported immediately, a new one after it has settled, so that half-configured links are not used.
//
// Concurrency: all exported types are safe for concurrent use once their fields are set. Every goroutine ends with the
// context or the call that started it. This package reads the clock.
//
// Source: rtnetlink(7).
//
// It does not judge whether a link works: that is package health. It does not add routes, rules or addresses.
package discover
