// Package byterange is the codec of the Range and Content-Range header fields (RFC 9110 section 14): the only place
// where the inclusive form of a range exists. Everything it returns is half-open.
//
// It is a leaf, so that the engine can read a client's Range field with it. It is pure and keeps no state. Positions that
// do not fit into an int64, the half-open end included, are refused (nginx CVE-2017-7529 was such an overflow).
package byterange
