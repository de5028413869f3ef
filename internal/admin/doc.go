// Package admin serves the read-only pages of the admin port: the live page, /metrics for Prometheus, /healthz for supervisors,
// /proxy.pac for browsers (R73). They answer only to this machine's own names for itself (R180) and change nothing (R181). All but
// the live page, which only the user who runs the proxy sees, name no host and no URL. Everything that changes state lives on the Unix socket of package control.
package admin
