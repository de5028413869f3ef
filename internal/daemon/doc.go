// Package daemon wires the parts together: it is the only package that knows them all. It starts them in an order in which
// nothing is used before it works, and stops them in reverse: first no new requests, then the running ones, then the
// links.
package daemon
