// Package control is how commands talk to a running proxy: HTTP over a Unix socket that its user and root alone may use,
// and what is said there. Nothing there names a URL, a host or a header.
package control
