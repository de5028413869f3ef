// Package relay carries tunnels over all links at once, to a server that connects them. A [Client] keeps a TLS connection, a
// lane, over each link; package lanes divides the bytes among them. A [Server] does the other half.
//
// Both ends have a key of their own and know the other's: the client learns the server's with an invitation, whose token
// makes its own key known, once. A lane says which session it belongs to by a secret that only the client and this server
// know, tied to its TLS connection by the exporter (RFC 9266): what was said on one connection proves nothing on another.
//
// Concurrency: a Client and a Server are safe for concurrent use; Run waits for all that it has started. A session's lock is
// never held while something is read from or written to a connection.
package relay
