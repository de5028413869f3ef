// Package control is how commands talk to a running proxy: HTTP over a Unix socket that only its user and root may use, and the
// messages on it. They contain no URL, host or header.
package control
