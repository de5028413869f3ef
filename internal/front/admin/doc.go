// Package admin serves the read-only pages of the admin port: the live page, /metrics for Prometheus, /healthz for
// supervisors, and /proxy.pac for browsers (R73). Requests must use one of this machine's own names in Host (R180), and
// they never change state (R181): commands that change state use the Unix socket of package control. Only the live page
// shows hosts and URLs, and only root and the user who runs the proxy may see it.
package admin
