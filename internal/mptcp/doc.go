// Package mptcp connects through a proxy server of the user's own over Multipath TCP (RFC 8684): the kernel carries one
// connection over several links, and any proxy whose listener speaks MPTCP is its other end. The kernel chooses the links, by the
// endpoints that the administrator has given it. So Check looks at these before each connection: bytes must not leave by a link
// that they may not use.
package mptcp
