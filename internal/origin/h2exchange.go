package origin

//lint:file-ignore SA1019 see h2.go

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/fault"
	"github.com/tributary-http/tributary/internal/segment"
	"github.com/tributary-http/tributary/pkg/byterange"
)

var errMalformed = errors.New("malformed answer")

// fieldCost is added to the length of each field's name and value in the size of a head (RFC 9113 section 6.5.2).
const fieldCost = 32

// exchange is one request and its answer. run owns it until done is closed, then the reader does; the connection's mu guards
// the marked fields.
type exchange struct {
	request *engine.RangeRequest
	req     *http.Request
	behind  bool  // sent before the answers to earlier requests were read
	asked   int64 // length of the range, maxOpen if the request names no last byte
	need    int64 // bytes that the answer may hold unread (mu)
	open    bool  // the answer may be longer than asked (mu)
	written bool  // the request is written or never will be (mu)

	interim chan interim  // never full: trace counts
	done    chan struct{} // closed when the fields below are set

	resp      *http.Response
	verdict   Verdict
	unwanted  bool  // the body was cancelled: the answer is not the one wanted
	err       error // no answer
	unwritten bool  // with err: the request was never written
}

type interim struct {
	status int
	header http.Header
}

// newExchange makes the request that a asks for; it carries the fields that HTTP/1.1 would.
func newExchange(ctx context.Context, a *engine.RangeRequest) (*exchange, error) {
	h := http.Header{}
	if err := eachField(a, h.Add); err != nil {
		return nil, err
	}
	h.Del("Host")
	// RFC 9113 section 8.2.2: fields that belong to a connection make a request malformed.
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Te"} {
		h.Del(name)
	}
	if len(h["User-Agent"]) == 0 {
		h["User-Agent"] = []string{""} // http2 then sends none
	}
	// An opaque path goes out byte for byte; where it looks like an authority, net/url wants the real one before it.
	opaque := a.Target.Path
	if strings.HasPrefix(opaque, "//") {
		opaque = "//" + a.Target.Host + opaque
	}
	req := &http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "https", Host: a.Target.Host, Opaque: opaque},
		Host:   a.Target.Host,
		Header: h,
		Proto:  "HTTP/2.0", ProtoMajor: 2,
	}
	x := &exchange{request: a, asked: maxOpen, interim: make(chan interim, MaxInterim), done: make(chan struct{})}
	if lastNamed(a) {
		x.asked = a.Range.Len()
	}
	x.need = min(x.asked, streamWindow)
	x.req = req.WithContext(ctx)
	return x, nil
}

// lastNamed reports whether the request names the last byte it wants.
func lastNamed(a *engine.RangeRequest) bool {
	return a.Range != (segment.Range{}) && a.Range.End != byterange.Open
}

// endless reports whether judge may let an answer pass that is longer than asked.
func (x *exchange) endless() bool { return x.request.Want == nil || !lastNamed(x.request) }

// bounded reports whether the answer that judge accepted is at most as long as requested.
func (x *exchange) bounded() bool {
	r := x.verdict.Range
	return x.verdict.Err == nil && r.End >= 0 && r.Len() <= x.asked
}

// trace makes http2 notify c when the request is written and when its answer begins, and pass on interim answers.
func (x *exchange) trace(c *h2conn) {
	room, count := maxHead, 0
	x.req = x.req.WithContext(httptrace.WithClientTrace(x.req.Context(), &httptrace.ClientTrace{
		WroteRequest:         func(httptrace.WroteRequestInfo) { c.wrote(x) },
		GotFirstResponseByte: func() { c.begun(x) },
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			for name, values := range h {
				for _, v := range values {
					room -= len(name) + len(v) + fieldCost
				}
			}
			switch count++; {
			case code == http.StatusSwitchingProtocols: // RFC 9113 section 8.6
				return errSwitched
			case count > MaxInterim:
				return errInterim
			case room < 0:
				return errHeadTooLong
			}
			x.interim <- interim{code, http.Header(h)}
			return nil
		},
	}))
}

// await waits for the head of the answer and hands out interim answers until then.
func (x *exchange) await() {
	tell := func(i interim) {
		if x.request.Interim != nil {
			x.request.Interim(i.status, i.header)
		}
	}
	for {
		select {
		case i := <-x.interim:
			tell(i)
		case <-x.done:
			for len(x.interim) > 0 {
				tell(<-x.interim)
			}
			return
		}
	}
}

// judge takes a head. It ends the stream of an answer that is not wanted: its bytes would fill the window.
func (x *exchange) judge(resp *http.Response, now time.Time) error {
	x.resp = resp
	if resp.StatusCode < 200 || resp.StatusCode > 999 {
		resp.Body.Close()
		return errors.Join(errMalformed, errBadStatus)
	}
	if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		resp.Body.Close() // a Content-Length there is that of another answer (RFC 9110 section 8.6)
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	h := Head{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, Trailer: len(resp.Trailer) > 0}
	if x.request.Want == nil {
		x.verdict = Identify(x.request, h)
		return nil
	}
	x.verdict = Check(x.request, h, now)
	if x.verdict.Err != nil {
		x.unwanted = true
		resp.Body.Close()
	}
	return nil
}

// lost returns the outcome of an x without an answer. A request that the origin did not act on (REFUSED_STREAM, GOAWAY: RFC
// 9113 section 8.7) is Stale or Unanswered, a malformed head Refused.
func (c *h2conn) lost(x *exchange) fault.Outcome {
	var reset http2.StreamError
	var broke http2.ConnectionError
	var away http2.GoAwayError
	switch {
	case errors.Is(x.err, errMalformed):
		return fault.Unwanted
	case errors.Is(x.err, errFlood):
		return fault.BadRange
	case errors.As(x.err, &reset):
		switch reset.Code {
		case http2.ErrCodeProtocol, http2.ErrCodeHTTP11Required, http2.ErrCodeInadequateSecurity:
			return fault.Unwanted
		case http2.ErrCodeEnhanceYourCalm:
			return fault.Busy
		}
	case errors.As(x.err, &broke) && !x.behind: // else it may be another answer that broke the connection
		return fault.Unwanted
	case errors.As(x.err, &away) && away.ErrCode == http2.ErrCodeEnhanceYourCalm:
		return fault.Busy
	case x.unwritten && c.h2.CanTakeNewRequest(): // too long for this origin, or such
		return fault.Unwanted
	}
	return c.unanswered()
}
