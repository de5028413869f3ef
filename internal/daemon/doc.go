// Package daemon connects the parts of the proxy and is the only package that imports all of them. It starts each part
// before the parts that use it, and stops them in reverse order: it refuses new requests, waits for running ones, and
// closes the links.
//
// Reasons: docs/decisions/reload.md.
package daemon
