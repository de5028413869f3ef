// Package redirect uses rules of the kernel's firewall to send TCP connections of local programs to a port of this
// machine, whatever their destination, and finds the original destination of a redirected connection (R153 to R165).
//
// The rules are in their own table (nftables) or chains (iptables). They are added and removed in one transaction per
// family, and found by name: root can remove them whether or not the program that added them is still running.
//
// All functions are safe for concurrent use. If two change rules at the same time, either may win.
//
// Reasons: docs/decisions/redirected-port.md.
package redirect
