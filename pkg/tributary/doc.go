// Package tributary sends HTTP requests over every network link of a machine at once: Wi-Fi, LTE, Ethernet, a second
// modem.
//
// A [Transport] is an [http.RoundTripper]. A large GET becomes a transfer: disjoint ranges of the object are fetched on
// connections that are each bound to one link, and the response's Body gives their bytes in order. When a link slows
// down or dies, the transfer continues over the others at the byte where it stopped. The server has to support range
// requests; if it does not, or if the request is not a GET that can be divided, the request goes over one link as it
// is.
//
//	t, err := tributary.New(tributary.Options{})
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	client := &http.Client{Transport: t}
//	resp, err := client.Get("https://example.com/big.iso")
//
// Bytes that arrive before their turn wait in memory, which [Options.Memory] bounds. [Transport.Download] writes to an
// [io.WriterAt], such as a file, in the order in which bytes arrive, and does not need this memory.
//
// The content of a response always belongs to a single version of the object, according to its validators; otherwise
// reading it fails. Names are resolved over the link that carries the request, and certificates are verified on each
// link.
//
// On Linux before 5.7, binding a socket to a link requires CAP_NET_RAW; later versions need no privilege.
//
// # Why a response is not divided
//
// A [Report] shows how a request used the links. [Report.Undivided] is one of these words. The request decided:
//
//   - method: it is not a GET
//   - scheme: its URL is neither http nor https
//   - body: it has a body
//   - upgrade, expect, trailers: it asks for another protocol, for 100 Continue, or for trailers
//   - range_nominated: its Connection field removes a field that decides which bytes are asked for
//   - multi_range, suffix_range, bad_range: its Range is more than one range, the last n bytes, or cannot be
//     understood; bad_range also if the server answers with another range
//   - auth_connection, auth_once, auth_unknown: its credentials belong to one connection (NTLM, Negotiate) or to one
//     request (Digest, OAuth 1), or have an unknown scheme
//   - signed: a signature covers a field that differs between the requests for ranges, such as Range, or
//     Accept-Encoding unless it is only "identity"; AWS signatures and presigned URLs that cover no such field are
//     divided
//
// The response decided:
//
//   - small: it contains the whole object, which is not larger than [Options.MinSize]
//   - status: it is neither 200 nor the 206 that was asked for
//   - no_ranges: the server does not serve ranges of this object
//   - no_validator, weak_validator: it has no strong ETag, and no Last-Modified that counts as one, so a change of the
//     object could not be noticed
//   - unknown_length: it does not give the size of the object
//   - coding, vary: it has a content coding, or Vary is *
//   - multipart, trailer, framing, http_1_0: it is multipart/byteranges, announces trailers, has both Content-Length
//     and Transfer-Encoding, or is HTTP/1.0
package tributary
