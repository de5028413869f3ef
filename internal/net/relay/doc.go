// Package relay carries tunnels over all links at once, to a server that connects them. A [Client] keeps a TLS
// connection, a lane, over each link; package lanes divides the bytes among them. A [Server] is the other end.
//
// Each end has a key of its own and knows the other's: the client learns the server's from an invitation, whose token
// enrols the client's own key, once. A lane names its session by a secret that only the client and this server know,
// tied to the lane's TLS connection by the exporter (RFC 9266): a message from one connection proves nothing on
// another.
//
// Concurrency: a Client and a Server are safe for concurrent use; Run waits for all goroutines that it started. A
// session's lock is never held during a read from or a write to a connection.
package relay
