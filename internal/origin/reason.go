package origin

// Reason says why no other answer may be joined to a first one. It is the Splice error of a Reply; its text is a stable
// short name for logs and metrics.
type Reason string

// The reasons, in the order in which they are looked for. NoRanges is the last: an answer with this reason fulfils all
// other conditions, so whoever knows that ranges work here may go on.
const (
	NotObject     Reason = "status"         // neither 200 nor the 206 that was asked for
	HTTP10        Reason = "http_1_0"       // RFC 9110 section 14.2 binds nobody who speaks HTTP/1.0
	Framing       Reason = "framing"        // Content-Length next to Transfer-Encoding
	Multipart     Reason = "multipart"      // multipart/byteranges
	Trailer       Reason = "trailer"        // a trailer section is announced
	Vary          Reason = "vary"           // Vary: *
	Coding        Reason = "coding"         // a content coding, which need not be byte-stable
	UnknownLength Reason = "unknown_length" // the size of the object is not told
	WeakValidator Reason = "weak_validator" // W/ tag, or a Last-Modified date that may hide a change
	NoValidator   Reason = "no_validator"   // no usable ETag and no Last-Modified
	NoRanges      Reason = "no_ranges"      // range requests are not said to work
)

func (r Reason) Error() string { return string(r) }
