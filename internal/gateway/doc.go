// Package gateway serves https objects on a loopback address, for programs that can be given another address for their
// downloads but cannot use a proxy for https:
//
//	http://127.0.0.1:PORT/https/HOST/PATH   the object https://HOST/PATH
//	http://127.0.0.1:PORT/simple/HOST/PATH  the same, but index pages of Python packages (PEP 503, PEP 691) lead back here
//	http://127.0.0.1:PORT/hf/HOST/PATH      the same, but answered as a Hugging Face hub without Xet storage
//	http://127.0.0.1:PORT/brew/HOST/PATH    the same; Homebrew puts whole URLs into PATH
//	http://127.0.0.1:PORT/v2/...            container registries, see oci.go
//
// Objects are fetched by verified https over every link. Redirects are followed, with credentials for the first host only, so
// that the client gets the final answer. The gateway answers GET and HEAD of programs that run on this machine, and never a
// browser's: all it serves has one origin there, whoever wrote it. It fetches from hosts that the user listed, and from those
// to which their redirects and index pages lead.
package gateway
