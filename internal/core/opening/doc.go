// Package opening decides how a GET starts: whether it may be divided at all, which range the first request asks for,
// which links it may use, and how to use each response to it.
//
// [Ineligible] reads the client's request and returns why it must be passed through over one link. If there is no
// reason against dividing it, an [Opening] takes the request through these states. The Opening gets the head of every
// response to the first request (there are several if the first one is overdue and a copy is sent over another link):
//
//	               Drop: a request before this one may still be answered
//	                 +--+
//	                 |  v
//	New ---First---> asked ---Stream---> streamed: the client gets this response as it is
//	         ^       |   |
//	         |       |   +----Join-----> joined: the client gets this version over all links
//	         |       |                   |  |  ^
//	         |     Repeat                |  +--+ Join: a copy brought the same version; Drop: another one
//	         |       |                   |
//	         |       v        Lost       |
//	         +---- again <---------------+ once, if the client has seen nothing of it; otherwise the download fails
//
// Repeat is for responses that our own Range field may have changed; the next request is then the client's own.
//
// A wrong "no" costs speed, while a wrong "yes" costs correct bytes. So in case of doubt a request goes over one link,
// and a [Reason] says why. Package origin parses responses and checks that the responses of a transfer belong to one
// version; it does not depend on this package. Package engine sends the requests and stores what [Opening.Remember]
// returns for later GETs.
//
// The package is pure: it uses no clock and no I/O, and never changes the client's fields. An Opening belongs to one
// goroutine at a time; everything else is safe for concurrent use.
//
// Reasons: docs/decisions/first-request.md, early-links.md.
package opening
