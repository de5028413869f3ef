package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/fault"
	"github.com/tributary-http/tributary/internal/transport"
	"github.com/tributary-http/tributary/pkg/byterange"
)

// kept are the fields of an answer that no client gets: hop-by-hop ones, and those that speak to a browser, or about the origin
// that the answer had before it came here.
var kept = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Trailer", "Content-Length",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Set-Cookie", "Set-Cookie2", "Location", "Refresh", "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data", "Public-Key-Pins",
	"Service-Worker-Allowed", "Sourcemap", "X-Sourcemap", "Report-To", "Reporting-Endpoints", "Nel",
}

// harmless makes sure that whatever a browser shows of an answer can do nothing.
func harmless(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// answerHeader removes from an answer's fields those that no client gets.
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
	defer func() { a.Body.Close() }() // of the last answer
	switch {
	case a.StatusCode < 200 || a.StatusCode > 999, a.StatusCode == http.StatusProxyAuthRequired, leads(a.Response):
		x.refuse(badGateway("The server's response is not valid for a download. Try again later."))
		return
	}
	answerHeader(a.Header)
	bodiless := x.r.Method == http.MethodHead || a.StatusCode == http.StatusNoContent || a.StatusCode == http.StatusNotModified
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
		x.g.Log.Debug("response broke off", "status", a.StatusCode, "sent", out.sent, "client_gone", out.failed, "err", err)
		panic(http.ErrAbortHandler) // visibly incomplete
	}
	x.g.Log.Debug("answer sent", "method", x.r.Method, "status", a.StatusCode, "bytes", out.sent)
}

// copy sends the content. When the server refuses to send more of it, the first URL is asked again: those to which it redirects
// often hold for minutes only.
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
		x.g.Log.Debug("requested the first URL again", "sent", out.sent, "err", err)
		next, failure := x.rest(a, part, out.sent)
		if failure != nil {
			return errors.Join(err, failure)
		}
		a.Body.Close()
		a.Response = next
	}
}

// part is what an answer holds of an object.
type part struct {
	id         transport.Identity
	start, end int64 // of its bytes
}

// partOf returns it, and whether the rest of an answer could be joined to its beginning.
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

// rest asks the first URL of an answer for what is left of it after so many bytes.
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
	if err != nil || next.StatusCode != http.StatusPartialContent || c.Range != want || transport.Identify(next.Response) != p.id {
		next.Body.Close()
		return nil, fmt.Errorf("the first URL answers %d, not the rest of the same version", next.StatusCode)
	}
	return next.Response, nil
}

const (
	stallTime  = 5 * time.Minute // how long a client may take nothing; its memory could serve others
	writePiece = 256 << 10       // bytes that must go within stallTime
)

// boundWrite makes the next write fail if the client does not take it within stallTime.
func (x *exchange) boundWrite() { _ = x.rc.SetWriteDeadline(time.Now().Add(stallTime)) }

// clientWriter writes an answer's content, each piece of it at once.
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
