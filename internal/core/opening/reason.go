package opening

// Reason names why a response arrives over one link instead of being divided. It is the label of the metric
// tributary_pass_through_total, and is stable.
type Reason string

// None says that there is no reason against dividing a download.
const None Reason = ""

// Reasons in the client's request. They are checked in this order, and the first one that applies is reported.
const (
	Method         Reason = "method"          // not a GET
	Scheme         Reason = "scheme"          // neither http nor https in absolute form
	Body           Reason = "body"            // a GET with content has no defined meaning (RFC 9110 section 9.3.1)
	Upgrade        Reason = "upgrade"         // the request asks for another protocol
	Expect         Reason = "expect"          // the request asks for an interim answer
	Trailers       Reason = "trailers"        // the client wants trailers, which segments cannot carry
	Nominated      Reason = "range_nominated" // Connection removes a field that decides which bytes are requested
	MultiRange     Reason = "multi_range"     // several ranges in one response
	SuffixRange    Reason = "suffix_range"    // the last n bytes: their start is known only from the response
	BadRange       Reason = "bad_range"       // another unit, bad syntax or beyond int64; or a 206 for another range
	AuthConnection Reason = "auth_connection" // NTLM, Negotiate: the credentials belong to one connection
	AuthOnce       Reason = "auth_once"       // Digest, OAuth 1, ...: each request needs its own credentials
	AuthUnknown    Reason = "auth_unknown"    // unknown scheme: using it twice may not be safe
	Signed         Reason = "signed"          // a signature covers a field that differs between the parts of a transfer
)

// Crowded is a reason in the proxy: too many requests are already running, so this one gets one connection.
const Crowded Reason = "crowded"

// Reasons in the first response. Package origin reports why other responses may not be joined to it, in this order.
// NoRanges is the last: a response with this reason meets all other conditions.
const (
	Status        Reason = "status"         // neither 200 nor the requested 206
	HTTP10        Reason = "http_1_0"       // RFC 9110 section 14.2 does not bind HTTP/1.0 servers
	Framing       Reason = "framing"        // both Content-Length and Transfer-Encoding
	Multipart     Reason = "multipart"      // multipart/byteranges
	Trailer       Reason = "trailer"        // a trailer section is announced
	Vary          Reason = "vary"           // Vary: *
	Coding        Reason = "coding"         // a content coding, which need not be byte-stable
	UnknownLength Reason = "unknown_length" // the response does not give the size of the object
	WeakValidator Reason = "weak_validator" // W/ tag, or a Last-Modified date that may hide a change
	NoValidator   Reason = "no_validator"   // no usable ETag and no Last-Modified
	NoRanges      Reason = "no_ranges"      // the origin does not serve ranges, or not for this object
)

// Small is the reason if the first response has the whole object, which is not larger than the threshold.
const Small Reason = "small"
