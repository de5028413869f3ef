package get

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"syscall"

	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/transport"
)

// Kind says where the fault lies.
type Kind uint8

// The kinds of errors. Each has an exit code.
const (
	Network    Kind = iota // no link, no DNS, no connection, or none that holds
	Server                 // an answer that is not the object
	Trust                  // TLS: a certificate or a handshake that is not as it must be
	File                   // the file cannot be written
	Permission             // the same, for want of permission
	Mismatch               // the checksum is another one
	Usage                  // what the user typed
	Canceled               // the context ended
)

// Error is why a download failed.
type Error struct {
	Kind Kind
	Err  error
	Next string // what the user can do
	// Temporary says that the same may work another time, without anybody doing anything.
	Temporary bool
	Kept      string // what became of the bytes so far, "" if there is nothing to say
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Next != "" {
		text += ": " + e.Next
	}
	if e.Kept != "" {
		text += "; " + e.Kept
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// canceled makes the error of a download that was told to end.
func canceled(err error) error {
	e := &Error{Kind: Canceled, Err: errors.New("stopped")}
	if was := (*Error)(nil); errors.As(err, &was) {
		e.Kept = was.Kept
	}
	return e
}

// unreachable makes the error of a request without an answer.
func unreachable(err error, at location) error {
	e := &Error{Kind: Network, Err: fmt.Errorf("%s: %w", at.url.Host, err), Temporary: true}
	attempt, _ := transport.FailureOf(err)
	var dns *net.DNSError
	switch {
	case errors.Is(err, transport.ErrNoLink):
		e.Err, e.Next = err, "\"tributary links\" shows the links and why they are not used"
	case untrusted(err):
		e.Kind, e.Temporary, e.Next = Trust, false, "check the URL; for a private authority, name its certificate with --cacert"
		if errors.As(err, new(tls.RecordHeaderError)) {
			e.Next = "check scheme and port: this server does not speak TLS there"
		}
	case errors.As(err, &dns), errors.Is(err, link.ErrNoServer):
		e.Next = "check its spelling; \"tributary links\" shows the DNS servers"
	case errors.As(err, new(*link.BindError)):
		e.Kind, e.Temporary, e.Next = Permission, false, "\"tributary doctor\" shows what is missing"
	case errors.Is(err, link.ErrOffLink):
		e.Next = "the server belongs to an interface that is not one of the links, such as a VPN: \"tributary links\" shows them; use one by --link NAME"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Next = "check the port, and that the server runs"
	case attempt.Cause == transport.Full:
		e.Next = "max_connections_per_host in the configuration allows no more connections to it at a time: try again later, or allow more"
	case attempt.Cause == transport.Busy:
		e.Kind, e.Next = Server, "the server is busy: try again later"
	case attempt.Origin():
		e.Kind, e.Temporary, e.Next = Server, false, "the server's answers do not fit together: try again"
	default:
		e.Next = "check the address and the links, then try again"
	}
	return e
}

// untrusted reports whether TLS failed.
func untrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.HostnameError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.CertificateInvalidError)) ||
		errors.As(err, new(tls.AlertError)) || errors.As(err, new(tls.RecordHeaderError))
}

// broken makes the error of content that ended early.
func broken(err error) error {
	e := &Error{Kind: Network, Err: fmt.Errorf("the download broke off: %w", err), Next: "try again", Temporary: true}
	if attempt, _ := transport.FailureOf(err); attempt.Origin() {
		e.Kind = Server
		if attempt.Cause == transport.Changed {
			e.Err = fmt.Errorf("the object changed while it was fetched: %w", err)
		}
	}
	return e
}

// refused makes the error of an answer that is not the object.
func refused(resp *http.Response, at location) error {
	e := &Error{Kind: Server, Err: fmt.Errorf("%s answers %s", at.url.Host, status(resp.StatusCode)), Next: "try again later"}
	e.Temporary = resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented && resp.StatusCode != http.StatusHTTPVersionNotSupported &&
		resp.StatusCode != http.StatusNetworkAuthenticationRequired
	switch resp.StatusCode {
	case http.StatusPartialContent:
		e.Err = fmt.Errorf("%s sends a part of the file (206), though all of it was asked for", at.url.Host)
		e.Next = "its answers cannot be trusted: look for another server that has the file"
	case http.StatusNotFound, http.StatusGone:
		e.Next = "check the URL"
	case http.StatusUnauthorized:
		e.Next = `it wants to know who you are: --header "Authorization: Bearer TOKEN", or user:password@ in the URL`
	case http.StatusForbidden:
		e.Next = "you may not have it: check the URL and whether it needs a login"
	case http.StatusProxyAuthRequired, http.StatusNetworkAuthenticationRequired:
		e.Next = "this network wants a login: open any page in a browser"
	case http.StatusRequestTimeout:
		e.Temporary = true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		e.Temporary = true
		if after := resp.Header.Get("Retry-After"); after != "" && len(after) < 40 {
			e.Next += fmt.Sprintf(" (it says: Retry-After %q)", after)
		}
	default:
		if resp.StatusCode < 500 {
			e.Next = "check the URL and the --header fields"
		}
	}
	return e
}

// fileError makes the error of a file, which is named if err does not do so.
func fileError(err error, name string) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &Error{Kind: File, Err: err, Next: "check the disk and the name"}
	if !errors.As(err, new(*fs.PathError)) {
		e.Err = fmt.Errorf("%s: %w", name, err)
	}
	var stranger *strangerError
	switch {
	case errors.As(err, &stranger):
		e.Err, e.Next = stranger, "choose another folder with -d or -o, or remove it"
	case errors.Is(err, errNotRegular):
		e.Err, e.Next = err, "choose another name with -o, or remove it"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Kind, e.Next = Permission, "choose a folder that you may write to, with -d or -o"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Next = "the disk is full: make room, or choose another one with -d or -o"
	case errors.Is(err, syscall.EFBIG):
		e.Next = "a file may not be that large there: raise the limit (ulimit -f), or choose another file system with -d or -o"
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Next = fmt.Sprintf("the name is too long: choose one of at most %d bytes with -o", maxName)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Next = fmt.Sprintf("make the folder first: mkdir -p %q", filepath.Dir(name))
	case errors.Is(err, fs.ErrExist):
		e.Next = "it appeared meanwhile: replace it with --force"
	case errors.Is(err, syscall.ELOOP):
		e.Next = "it is a symbolic link: remove it"
	case errors.Is(err, syscall.EIO):
		e.Next = "the disk is failing: choose another one with -d or -o"
	case errors.Is(err, syscall.EPIPE):
		e.Next = "the program that reads the output has ended"
	}
	return e
}
