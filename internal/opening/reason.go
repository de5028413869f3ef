package opening

// Reason names why a response comes over one link instead of being divided. It is the label of the metric
// tributary_pass_through_total, and stable.
type Reason string

// None says that there is no reason against dividing a download.
const None Reason = ""

// Reasons that lie in the client's request. They are checked in this order, and the first one that holds is reported.
const (
	Method         Reason = "method"          // not a GET
	Scheme         Reason = "scheme"          // neither http nor https in absolute form
	Body           Reason = "body"            // a GET with content has no defined meaning (RFC 9110 section 9.3.1)
	Upgrade        Reason = "upgrade"         // asks for another protocol
	Expect         Reason = "expect"          // asks for an interim answer
	Trailers       Reason = "trailers"        // wants trailers, which segments cannot give
	Nominated      Reason = "range_nominated" // Connection removes a field that decides which bytes are asked for
	MultiRange     Reason = "multi_range"     // several ranges in one answer
	SuffixRange    Reason = "suffix_range"    // the last n bytes: where they begin is known only from the answer
	BadRange       Reason = "bad_range"       // another unit, bad syntax or beyond int64; or a 206 for another range
	AuthConnection Reason = "auth_connection" // NTLM, Negotiate: the credentials belong to one connection
	AuthOnce       Reason = "auth_once"       // Digest, OAuth 1, ...: each request needs credentials of its own
	AuthUnknown    Reason = "auth_unknown"    // unknown scheme: nothing is known about using it twice
	Signed         Reason = "signed"          // a signature covers a field that differs between the parts of a transfer
)

// Crowded is a reason of the proxy: too many requests are running already, so this one gets one connection.
const Crowded Reason = "crowded"

// Reasons that lie in the first response. Package origin reports why other responses may not be joined to it, in this order.
// NoRanges is the last: a response with this reason fulfils all other conditions.
const (
	Status        Reason = "status"         // neither 200 nor the 206 that was asked for
	HTTP10        Reason = "http_1_0"       // RFC 9110 section 14.2 binds nobody who speaks HTTP/1.0
	Framing       Reason = "framing"        // Content-Length next to Transfer-Encoding
	Multipart     Reason = "multipart"      // multipart/byteranges
	Trailer       Reason = "trailer"        // a trailer section is announced
	Vary          Reason = "vary"           // Vary: *
	Coding        Reason = "coding"         // a content coding, which need not be byte-stable
	UnknownLength Reason = "unknown_length" // the response does not say how long the object is
	WeakValidator Reason = "weak_validator" // W/ tag, or a Last-Modified date that may hide a change
	NoValidator   Reason = "no_validator"   // no usable ETag and no Last-Modified
	NoRanges      Reason = "no_ranges"      // the origin does not serve ranges, or not of this object
)

// Small says that the first response has the whole object, which is not larger than the threshold.
const Small Reason = "small"
