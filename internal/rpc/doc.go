// Package rpc answers aria2's JSON-RPC 2.0 (aria2c(1), RPC INTERFACE) on a loopback port, over HTTP and WebSocket, so that browser
// extensions and front ends made for aria2 order and watch downloads of package queue. docs/RPC.md lists the methods.
//
// What can reach the port need not be the user: other users of the machine, pages of any site, and sites whose names lead here for
// a moment (DNS rebinding). So connections of other users are refused, as is a Host that is not this machine's own, and an Origin
// that is neither an extension's nor listed; no page can frame or read an answer. Every call needs the token besides, which is
// compared in constant time. Notifications go to those sockets only that have shown it.
//
// Errors have the codes and words of aria2 where it has them: front ends show these, and some compare them.
package rpc
