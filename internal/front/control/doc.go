// Package control lets commands talk to a running proxy, by HTTP over a Unix socket that only root and the proxy's user
// may use. Its messages do not contain URLs, hosts or headers.
package control
