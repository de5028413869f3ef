// Package redirect sends TCP connections of local programs to a port of this machine, whatever their destination, by rules of
// the kernel's firewall, and finds the original destination of a redirected connection (R153 to R165).
//
// The rules are in their own table (nftables) or chains (iptables). They are added and removed in one transaction per family, and
// found by their names: root can remove them whether or not the program that added them still runs.
//
// All functions are safe for concurrent use. If two change rules at the same time, either may win.
package redirect
