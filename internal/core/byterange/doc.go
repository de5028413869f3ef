// Package byterange parses and formats the Range and Content-Range header fields of HTTP (RFC 9110 section 14), for one
// range of bytes.
//
// The fields contain inclusive positions; everything else in this package is half-open. Positions that do not fit into
// an int64, including the half-open end, are rejected (nginx CVE-2017-7529 was such an overflow).
package byterange
