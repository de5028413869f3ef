// Package origintest provides an HTTP server for tests that can misbehave on demand.
//
// A Server answers GET and HEAD for one Object on two listeners ("nodes"), so that a test can let each of two links see
// a node of its own. It implements HTTP/1.1 itself, byte for byte, with keep-alive and pipelining. Without faults it
// follows RFC 9110: ranges, If-Range, If-None-Match, 416. A Fault changes the answer to one request; faults are applied
// in the order given, and conditions (OnNode, OnSeq, AfterRequests, ...) wrap faults:
//
//	s := origintest.New(t, origintest.Object{Size: 1 << 20}, origintest.OnNode(1, origintest.Status(403)))
//
// The bytes of an object are a function of its seed and the offset, so that any range can be checked alone. Each
// version has different bytes, which reveals a wrong splice.
//
// Close, which New registers as a cleanup, wakes everything that sleeps here. It waits for every goroutine of the
// server and fails the test if one is left.
package origintest
