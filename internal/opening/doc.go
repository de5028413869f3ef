// Package opening decides how a GET starts: whether it may be divided at all, which range the first request asks for and over
// which links it may go, and how to use each response to it.
//
// [Refusal] reads the client's request and says why it must be passed through over one link. If nothing speaks against dividing
// it, an [Opening] takes it through these states. It gets the head of every response to the first request (there are several if
// the first one is overdue and a copy goes out over another link):
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
// Repeat is for responses that our own Range field may have changed: the next request is the client's own.
//
// A wrong "no" costs speed, while a wrong "yes" costs correct bytes. So in doubt a request goes over one link, and a [Reason] says
// why. Package origin parses responses and checks that those of a transfer belong to one version; it does not depend on this
// package. Package engine sends the requests and stores what [Opening.Remember] returns for later GETs.
//
// It is pure: no clock, no I/O, and it never changes the client's fields. An Opening belongs to one goroutine at a time;
// everything else is safe for concurrent use.
package opening
