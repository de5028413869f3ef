// Package redirect sends TCP connections of local programs to a port of this machine, whatever their destination, by rules of
// the kernel's firewall, and finds the original destination of a redirected connection (R153 to R165).
//
// The rules live in a table (nftables) or chains (iptables) of their own. They come and go in one transaction per family, need
// nobody to keep them, and are found again by their names: root can remove them, whether or not the program that added them
// still runs.
//
// All functions are safe for concurrent use, but of two that change rules at the same time either may win.
package redirect
