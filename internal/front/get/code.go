package get

import (
	"errors"
	"net/http"
	"syscall"

	"github.com/tributary-http/tributary/internal/core/fault"
)

// Code is the reason why a download failed, for programs that have their own texts (docs/APPBRIDGE.md).
type Code string

// The codes.
const (
	CodeBadURL       Code = "bad_url"
	CodeNoLink       Code = "no_link"
	CodeUnknownName  Code = "unknown_name"
	CodeUnreachable  Code = "unreachable"
	CodeSilent       Code = "silent"
	CodeBrokeOff     Code = "broke_off"
	CodeCertificate  Code = "certificate"
	CodeTLS          Code = "tls"
	CodeForbidden    Code = "forbidden"
	CodeBusy         Code = "busy"
	CodeLogin        Code = "login"
	CodeNetworkLogin Code = "network_login"
	CodeNotFound     Code = "not_found"
	CodeServerError  Code = "server_error"
	CodeStatus       Code = "status"
	CodeRedirect     Code = "redirect"
	CodeChanged      Code = "changed"
	CodeDiffers      Code = "differs"
	CodeBadAnswer    Code = "bad_answer"
	CodeDiskFull     Code = "disk_full"
	CodeFileTooLarge Code = "file_too_large"
	CodeFile         Code = "file"
	CodeChecksum     Code = "checksum"
)

// outcomeCodes maps each outcome that a request can end with to its code.
var outcomeCodes = map[fault.Outcome]Code{
	fault.NoLink: CodeNoLink, fault.NoSlot: CodeNoLink, fault.Unbound: CodeNoLink,
	fault.UnknownName: CodeUnknownName, fault.SilentDNS: CodeUnknownName,
	fault.Unreachable: CodeUnreachable, fault.Unknown: CodeUnreachable, fault.PortClosed: CodeUnreachable,
	fault.NoRoute: CodeUnreachable,
	fault.Silence: CodeSilent, fault.Timeout: CodeSilent,
	fault.Short: CodeBrokeOff, fault.Reset: CodeBrokeOff, fault.Unanswered: CodeBrokeOff, fault.Stale: CodeBrokeOff,
	fault.LinkLost: CodeBrokeOff, fault.Canceled: CodeBrokeOff,
	fault.BadCertificate: CodeCertificate, fault.WrongClock: CodeCertificate, fault.BadTLS: CodeTLS,
	fault.Denied: CodeForbidden, fault.Rebound: CodeForbidden, fault.OffLink: CodeForbidden,
	fault.UpstreamDenied: CodeForbidden,
	fault.Busy:           CodeBusy, fault.Changed: CodeChanged, fault.Differs: CodeDiffers,
	fault.Unwanted: CodeBadAnswer, fault.NoRange: CodeBadAnswer, fault.BadRange: CodeBadAnswer,
	fault.Malformed: CodeBadAnswer,
}

// Code returns the reason why the download failed.
func (e *Error) Code() Code {
	switch {
	case e.Kind == Usage:
		return CodeBadURL
	case e.Kind == Mismatch:
		return CodeChecksum
	case e.Kind == File || e.Kind == Permission && e.Outcome == fault.Complete:
		switch {
		case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
			return CodeDiskFull
		case errors.Is(e.Err, syscall.EFBIG):
			return CodeFileTooLarge
		}
		return CodeFile
	case e.Redirect:
		return CodeRedirect
	case e.Status != 0:
		return statusCode(e.Status)
	case e.Outcome != fault.Complete:
		return outcomeCodes[e.Outcome]
	}
	return CodeBadAnswer
}

// statusCode returns the code of an answer that is not the object.
func statusCode(status int) Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return CodeLogin
	case http.StatusNotFound, http.StatusGone:
		return CodeNotFound
	case http.StatusProxyAuthRequired, http.StatusNetworkAuthenticationRequired:
		return CodeNetworkLogin
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return CodeBusy
	}
	if status >= 500 {
		return CodeServerError
	}
	return CodeStatus
}
