// Package gateway serves https objects on a loopback address, for programs whose download address can be changed but
// which cannot use a proxy for https:
//
//	http://127.0.0.1:PORT/https/HOST/PATH   the object https://HOST/PATH
//	http://127.0.0.1:PORT/TOKEN/https/HOST/PATH  the same, but for any host of the internet; see [Gateway.SetToken]
//	http://127.0.0.1:PORT/simple/HOST/PATH  the same, but index pages of Python packages (PEP 503, 691) lead back here
//	http://127.0.0.1:PORT/hf/HOST/PATH      the same, but answered as a Hugging Face hub without Xet storage
//	http://127.0.0.1:PORT/brew/HOST/PATH    the same; Homebrew puts whole URLs into PATH
//	http://127.0.0.1:PORT/v2/...            container registries, see oci.go
//
// Objects are fetched by verified https over all links. The gateway follows redirects, with credentials for the first
// host only, so that the client gets the final response. It serves GET and HEAD requests from programs on this machine,
// but never those from browsers, for which all objects here would have the same origin, whoever wrote them. It fetches
// from hosts that the user listed, and from those that their redirects and index pages lead to.
//
// Reasons: docs/decisions/gateway.md.
package gateway
