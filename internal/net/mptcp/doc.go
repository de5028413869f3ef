// Package mptcp connects through the user's own proxy server over Multipath TCP (RFC 8684). The kernel carries one connection
// over several links; the other end is any proxy whose listener supports MPTCP. The kernel chooses the links from the endpoints
// that the administrator has configured. So Check examines these endpoints before each connection: bytes must not leave over a
// forbidden link.
package mptcp
