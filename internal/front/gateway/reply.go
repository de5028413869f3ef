package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// kept are the response fields that are not passed to clients: hop-by-hop ones, those that instruct a browser, and
// those about the original origin of the response.
var kept = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Trailer", "Content-Length",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Set-Cookie", "Set-Cookie2", "Location", "Refresh", "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data",
	"Public-Key-Pins", "Service-Worker-Allowed", "Sourcemap", "X-Sourcemap", "Report-To", "Reporting-Endpoints", "Nel",
}

// harmless ensures that an answer can do nothing if a browser displays it.
func harmless(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// answerHeader removes the fields that clients do not get from an answer's header.
func answerHeader(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range kept {
		delete(h, name)
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "Content-Security-Policy") {
			delete(h, name)
		}
	}
	harmless(h)
}

// reply sends an answer to the client and closes its Body. It does not return if the answer breaks off.
func (x *exchange) reply(a *answer) {
	defer func() { a.Body.Close() }() // of the latest answer
	switch {
	case a.StatusCode < 200 || a.StatusCode > 999, a.StatusCode == http.StatusProxyAuthRequired, leads(a.Response):
		x.refuse(badGateway("The server's response is not valid for a download. Try again later."))
		return
	}
	answerHeader(a.Header)
	bodiless := x.r.Method == http.MethodHead || a.StatusCode == http.StatusNoContent ||
		a.StatusCode == http.StatusNotModified
	if a.ContentLength >= 0 && a.StatusCode != http.StatusNoContent && a.StatusCode != http.StatusNotModified {
		a.Header.Set("Content-Length", strconv.FormatInt(a.ContentLength, 10))
	}
	if _, ok := a.Header["Content-Type"]; !ok {
		a.Header["Content-Type"] = nil // keeps net/http from guessing one
	}
	h := x.w.Header()
	clear(h)
	for name, values := range a.Header {
		h[name] = values
	}
	x.boundWrite()
	x.w.WriteHeader(a.StatusCode)
	if bodiless {
		return
	}
	out := &clientWriter{x: x}
	if err := x.copy(out, a); err != nil {
		x.g.Log.Debug("response broke off", "status", a.StatusCode, "sent", out.sent, "client_gone", out.failed,
			"error", err)
		panic(http.ErrAbortHandler) // visibly incomplete
	}
	x.g.Log.Debug("answer sent", "method", x.r.Method, "status", a.StatusCode, "bytes", out.sent)
}

// copy sends the content. If the server refuses to send the rest, copy requests the first URL again, since the URLs
// that it redirects to are often valid for only minutes.
func (x *exchange) copy(out *clientWriter, a *answer) error {
	part, renewable := partOf(a.Response)
	length := a.ContentLength
	for renewed := int64(-1); ; renewed = out.sent {
		_, err := io.Copy(out, a.Body)
		switch {
		case err == nil && (length < 0 || out.sent == length):
			return nil
		case err == nil:
			err = fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, out.sent, length)
		}
		refused := transport.FailureOf(err).Outcome == fault.Unwanted
		if !refused || out.failed || !renewable || out.sent == renewed || x.r.Context().Err() != nil {
			return err
		}
		x.g.Log.Debug("requested the first URL again", "sent", out.sent, "error", err)
		next, failure := x.rest(a, part, out.sent)
		if failure != nil {
			return errors.Join(err, failure)
		}
		a.Body.Close()
		a.Response = next
	}
}

// part is the part of an object in an answer.
type part struct {
	id         transport.Identity
	start, end int64 // byte range within the object
}

// partOf returns the part in resp, and whether the rest of it could be requested separately and joined to its
// beginning.
func partOf(resp *http.Response) (part, bool) {
	p := part{id: transport.Identify(resp), end: resp.ContentLength}
	if resp.StatusCode == http.StatusPartialContent {
		c, err := byterange.ParseContentRange(resp.Header.Get("Content-Range"))
		if err != nil || len(resp.Header["Content-Range"]) != 1 || c.Range.Len() != resp.ContentLength {
			return p, false
		}
		p.start, p.end = c.Range.Start, c.Range.End
	} else if resp.StatusCode != http.StatusOK {
		return p, false
	}
	return p, resp.ContentLength > 0 && p.id.Validator != "" && p.id.Coding == ""
}

// rest requests the remainder of an answer, after sent bytes, from its first URL.
func (x *exchange) rest(a *answer, p part, sent int64) (*http.Response, error) {
	h := a.header.Clone()
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"} {
		delete(h, name)
	}
	h.Set("Range", fmt.Sprintf("bytes=%d-%d", p.start+sent, p.end-1))
	h.Set("If-Range", p.id.Validator)
	next, err := x.chain(a.first, h, nil)
	if err != nil {
		return nil, err
	}
	c, err := byterange.ParseContentRange(next.Header.Get("Content-Range"))
	want := byterange.Range{Start: p.start + sent, End: p.end}
	if err != nil || next.StatusCode != http.StatusPartialContent || c.Range != want ||
		transport.Identify(next.Response) != p.id {
		next.Body.Close()
		return nil, fmt.Errorf("the first URL answers %d, not the rest of the same version", next.StatusCode)
	}
	return next.Response, nil
}

const (
	stallTime  = 5 * time.Minute // how long a client may accept no data; its memory could serve others
	writePiece = 256 << 10       // bytes that the client must accept within stallTime
)

// boundWrite makes the next write fail if the client does not accept it within stallTime.
func (x *exchange) boundWrite() { _ = x.rc.SetWriteDeadline(time.Now().Add(stallTime)) }

// clientWriter writes an answer's content and flushes each piece.
type clientWriter struct {
	x      *exchange
	sent   int64
	failed bool // writing failed: the client is gone
}

// Write implements io.Writer.
func (c *clientWriter) Write(p []byte) (total int, err error) {
	for len(p) > 0 && err == nil {
		c.x.boundWrite()
		var n int
		n, err = c.x.w.Write(p[:min(len(p), writePiece)])
		if err == nil {
			err = c.x.rc.Flush()
		}
		total += n
		c.sent += int64(n)
		p = p[n:]
	}
	c.failed = c.failed || err != nil
	return total, err
}
