// Package policy decides what may be done with a client's request: whether a GET may become a transfer, how it starts
// and which links may carry it.
//
// A wrong "no" costs speed, a wrong "yes" costs bytes: whatever is unclear is refused, each refusal with a named Reason.
// Everything here is a pure function of the request line, the header section and whether there is a body; nothing is
// remembered, so all of it is safe for concurrent use. What the origin's answer allows is decided by package engine.
package policy
