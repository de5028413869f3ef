// Package admin serves the read-only pages of the admin port: /metrics for Prometheus, /healthz for supervisors, /proxy.pac for
// browsers (R73). They answer only to this machine's own names for itself (R180), change nothing and name no host and no URL
// (R181). Everything that changes state lives on the Unix socket of package control.
package admin
