package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
)

// reply sends an answer to the client as the origin gave it. It does not return if the answer breaks off.
func (x *exchange) reply(a *answer) {
	switch {
	case a.StatusCode < 200 || a.StatusCode > 999: // net/http parses 099, and would panic writing it (R13)
		x.refuse(badGateway("http_protocol_error", "The server's status code is not valid. Try again later."))
		return
	case a.StatusCode == http.StatusProxyAuthRequired: // a browser would answer with credentials meant for us (R35)
		x.refuse(badGateway("http_protocol_error", "The server requests proxy credentials, which only a proxy may do."))
		return
	}
	nominated := a.Header["Connection"]
	h := a.Header
	removeHopByHop(h)
	bodiless := x.r.Method == http.MethodHead || a.StatusCode == http.StatusNoContent ||
		a.StatusCode == http.StatusNotModified
	if a.ContentLength >= 0 && a.StatusCode != http.StatusNoContent && a.StatusCode != http.StatusNotModified {
		h.Set("Content-Length", strconv.FormatInt(a.ContentLength, 10))
	}
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // keeps net/http from guessing one (R29)
	}
	if !x.r.ProtoAtLeast(1, 1) || x.upload != nil && !x.upload.ended.Load() && x.r.ProtoMajor == 1 {
		// R59; content that is still to come cannot be distinguished from a next request (R57)
		h.Set("Connection", "close")
	}
	trailers := x.r.ProtoAtLeast(1, 1) && httpguts.HeaderValuesContainsToken(x.r.Header["Te"], "trailers") &&
		a.ContentLength < 0 && !bodiless
	if trailers {
		for name := range a.Trailer {
			if trailerAllowed(name, nominated) {
				h.Add("Trailer", name)
			}
		}
	}
	setAll(x.w.Header(), h)
	x.boundWrite()
	x.w.WriteHeader(a.StatusCode)
	clear(x.w.Header()) // fields found there later are trailers
	out := &clientWriter{x: x}
	err := out.flush()
	if err == nil && !bodiless {
		err = x.copyBody(out, a)
	}
	if err != nil {
		x.p.Log.Debug("response broke off", "status", a.StatusCode, "sent", out.sent, "client_gone", out.failed,
			"error", err)
		panic(http.ErrAbortHandler) // visibly incomplete: see cutoff.Show
	}
	x.boundWrite() // of the last chunk
	if trailers {
		for name, values := range a.Trailer {
			if trailerAllowed(name, nominated) {
				x.w.Header()[http.TrailerPrefix+name] = values
			}
		}
	}
	x.p.Log.Debug("answer sent", "method", x.r.Method, "status", a.StatusCode, "bytes", out.sent)
}

func (x *exchange) copyBody(out *clientWriter, a *answer) error {
	var n int64
	var err error
	if body, ok := a.Body.(io.WriterTo); ok { // a transfer's has memory of its own
		n, err = body.WriteTo(out)
	} else if x.p.transfers.Load() > maxTransfers { // so many answers may wait for slow clients
		n, err = io.CopyBuffer(out, a.Body, make([]byte, crowdedBuffer))
	} else {
		buf := x.p.buffers.Get().(*[]byte)
		defer x.p.buffers.Put(buf)
		n, err = io.CopyBuffer(out, a.Body, *buf)
	}
	if err == nil && a.ContentLength >= 0 && n != a.ContentLength {
		err = fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, n, a.ContentLength)
	}
	return err
}

const (
	stallTime  = 5 * time.Minute // how long a client may accept nothing; its memory could serve others
	writePiece = 256 << 10       // bytes that must be sent within stallTime
)

// boundWrite makes the next write fail if the client does not take it within stallTime. The server lifts the bound
// after the answer.
func (x *exchange) boundWrite() { _ = x.rc.SetWriteDeadline(time.Now().Add(stallTime)) }

// clientWriter writes an answer's body and flushes after each write: the client gets the origin's bytes at once (R66).
type clientWriter struct {
	x      *exchange
	sent   int64
	failed bool // writing failed: the client is gone
}

func (c *clientWriter) Write(p []byte) (int, error) {
	total := 0
	for len(p) > 0 {
		piece := p[:min(len(p), writePiece)]
		c.x.boundWrite()
		n, err := c.x.w.Write(piece)
		total += n
		c.sent += int64(n)
		if err != nil {
			c.failed = true
			return total, err
		}
		if err := c.flush(); err != nil {
			return total, err
		}
		p = p[n:]
	}
	return total, nil
}

func (c *clientWriter) flush() error {
	err := c.x.rc.Flush()
	c.failed = c.failed || err != nil
	return err
}
