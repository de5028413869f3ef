// Package rpc answers aria2's JSON-RPC 2.0 (aria2c(1), RPC INTERFACE) on a loopback port, over HTTP and WebSocket, so
// that browser extensions and front ends made for aria2 can order and watch downloads of package queue. docs/RPC.md
// lists the methods.
//
// The user is not the only one who can reach the port: other users of the machine, pages of any site, and sites whose
// names temporarily resolve to this machine (DNS rebinding) can too. So the server rejects connections of other users,
// a Host that is not this machine's own, and an Origin that is neither an extension's nor listed. Pages can neither
// frame nor read a response. Every call also needs the token, which is compared in constant time. Notifications are
// sent only to sockets that have shown the token.
//
// The port is free for any user while this process does not run. So a client can ask for a proof that the server knows
// its secret before it shows anything (see message.prove), as our own extension does.
//
// Errors have aria2's codes and texts if aria2 has them: front ends show these, and some compare them.
package rpc
