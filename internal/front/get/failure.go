package get

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Kind classifies errors. Its number is the exit code of the command.
type Kind int

// The kinds of errors.
const (
	Canceled   Kind = 1                    // the context ended
	Usage      Kind = 2                    // wrong arguments
	Permission Kind = fault.ExitPermission // the file or a link may not be used
	Network    Kind = fault.ExitNetwork    // no link, no DNS, no connection, or a connection that broke
	Server     Kind = fault.ExitServer     // the answer is not the object
	Trust      Kind = fault.ExitTLS        // the certificate or the handshake is invalid
	File       Kind = 8                    // the file cannot be written
	Mismatch   Kind = 9                    // checksum mismatch
)

// Error describes why a download failed.
type Error struct {
	Kind Kind
	Err  error
	Next string // next step for the user
	// Temporary reports whether the same download may work later without any action by the user.
	Temporary bool
	// how long the server asks to wait before that (Retry-After, RFC 9110 section 10.2.3); 0 = it does not say
	After time.Duration
	// where the bytes received so far are, or why none were kept; "" if there is nothing to report
	Kept     string
	Status   int           // of the HTTP answer that is the error; 0 = there is none
	Redirect bool          // the error is the target of a redirect
	Host     string        // host of the last request; "" = none
	Outcome  fault.Outcome // of the request; Complete if the request is not the error

	taken bool // the name belongs to something else; another name may work
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

// canceled returns the error of a download that was stopped.
func canceled(err error) error {
	e := &Error{Kind: Canceled, Err: errors.New("stopped")}
	if was := (*Error)(nil); errors.As(err, &was) {
		e.Kept = was.Kept
	}
	return e
}

// unreachable returns the error of a request without an answer.
func unreachable(err error, at location) error {
	o := transport.FailureOf(err).Outcome
	row := o.Row()
	e := &Error{
		Kind:      Kind(row.Exit),
		Err:       fmt.Errorf("%s: %w", at.url.Host, err),
		Next:      row.Next,
		Temporary: row.Retry,
		Host:      at.url.Host,
		Outcome:   o,
	}
	if o == fault.NoLink {
		e.Err = err
	}
	return e
}

// broken returns the error of content that ended early.
func broken(err error) error {
	e := &Error{
		Kind: Network, Err: fmt.Errorf("the download was interrupted: %w", err), Next: "try again", Temporary: true,
	}
	o := transport.FailureOf(err).Outcome
	if e.Outcome = o; o == fault.Unknown {
		e.Outcome = fault.Short
	}
	if o.Row().Exit == fault.ExitServer {
		e.Kind = Server
		switch o {
		case fault.Changed:
			e.Err = fmt.Errorf("the file changed on the server during the download: %w", err)
		case fault.Differs, fault.Malformed:
			e.Next, e.Temporary = o.Row().Next, o.Row().Retry
		}
	}
	return e
}

// refused returns the error of an answer that is not the object.
func refused(resp *http.Response, at location) error {
	e := &Error{
		Kind:   Server,
		Err:    fmt.Errorf("%s answers %s", at.url.Host, status(resp.StatusCode)),
		Next:   "try again later",
		Host:   at.url.Host,
		Status: resp.StatusCode,
	}
	e.Temporary = resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented &&
		resp.StatusCode != http.StatusHTTPVersionNotSupported &&
		resp.StatusCode != http.StatusNetworkAuthenticationRequired
	switch resp.StatusCode {
	case http.StatusPartialContent:
		e.Err = fmt.Errorf("%s sent a part of the file (206), although all of it was requested", at.url.Host)
		e.Next = "its responses cannot be trusted: find another server that has the file"
	case http.StatusNotFound, http.StatusGone:
		e.Next = "check the URL"
	case http.StatusUnauthorized:
		e.Next = `authentication required: add --header "Authorization: Bearer TOKEN", or user:password@ in the URL`
	case http.StatusForbidden:
		e.Next = "access denied: check the URL, and whether it requires a login"
	case http.StatusProxyAuthRequired, http.StatusNetworkAuthenticationRequired:
		e.Next = "this network requires a login: open any page in a browser"
	case http.StatusRequestTimeout:
		e.Temporary = true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		e.Temporary = true
		if e.After = transport.RetryAfter(resp.Header, time.Now()); e.After > 0 {
			e.Next = fmt.Sprintf("try again in %v, as the server asks", e.After.Round(time.Second))
		}
	default:
		if resp.StatusCode < 500 {
			e.Next = "check the URL and the --header fields"
		}
	}
	return e
}

// fileError returns the error of a file. It adds the name of the file if err does not contain it.
func fileError(err error, name string) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	e := &Error{Kind: File, Err: err, Next: "check the disk and the file name"}
	if !errors.As(err, new(*fs.PathError)) {
		e.Err = fmt.Errorf("%s: %w", name, err)
	}
	var stranger *strangerError
	switch {
	case errors.As(err, &stranger):
		e.taken = true
		e.Err, e.Next = stranger, "choose another folder with -d or -o, or remove it"
	case errors.Is(err, errNotRegular):
		e.taken = true
		e.Err, e.Next = err, "choose another name with -o, or remove it"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Kind, e.Next = Permission, "choose a folder that you can write to, with -d or -o"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Next = "the disk is full: free some space, or choose another disk with -d or -o"
	case errors.Is(err, syscall.EFBIG):
		e.Next = "the file is too large for a limit or the file system: raise the limit (ulimit -f), or choose another file system with -d or -o"
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Next = fmt.Sprintf("the name is too long: choose one of at most %d bytes with -o", maxName)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Next = fmt.Sprintf("create the folder first: mkdir -p %q", filepath.Dir(name))
	case errors.Is(err, fs.ErrExist):
		e.taken = true
		e.Next = "the file was created in the meantime: replace it with --force"
	case errors.Is(err, syscall.ELOOP):
		e.taken = true
		e.Next = "the file is a symbolic link: remove it"
	case errors.Is(err, syscall.EIO):
		e.Next = "the disk reports errors: choose another one with -d or -o"
	case errors.Is(err, syscall.EPIPE):
		e.Next = "the program that reads the output has exited"
	}
	return e
}
