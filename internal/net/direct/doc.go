// Package direct serves what is not divided: requests that pass through over one link, and tunnels.
//
// PassThrough sends a request over the first link that can connect, or over an idle connection, and nothing is retried
// once anything was sent. Placer decides which link starts first, counts the bytes of tunnels and requests, and finds
// connections whose other end has fallen silent. Pass-through and the transfers of package origin do not share
// connections, and a Pinned does not share its own. They do share what origin knows about TLS and about repairing
// heads.
//
// Concurrency: everything exported is safe for concurrent use.
//
// Reasons: docs/decisions/races.md, unacknowledged-data.md.
package direct
