package proxy

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// exchange is one request of a client and its answer. It belongs to the goroutine that serves the request; others reach
// it through tell.
type exchange struct {
	p      *Proxy
	w      http.ResponseWriter
	rc     *http.ResponseController
	r      *http.Request
	client *client
	upload *upload // the request's content, nil if there is none

	interims  chan interim  // to the serving goroutine
	settled   chan struct{} // closed when interim answers are no longer accepted
	over      chan struct{} // closed when the answer has been sent or given up
	count     int           // interim answers so far
	continued bool          // a 100 went to the client
}

func newExchange(p *Proxy, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{
		p:        p,
		w:        w,
		rc:       http.NewResponseController(w),
		r:        r,
		interims: make(chan interim),
		settled:  make(chan struct{}),
		over:     make(chan struct{}),
	}
	if r.ContentLength != 0 {
		x.upload = &upload{
			x: x, expect: r.ProtoAtLeast(1, 1) && httpguts.HeaderValuesContainsToken(r.Header["Expect"],
				"100-continue"),
		}
		x.upload.told, x.upload.turn = make(chan struct{}, 1), make(chan struct{}, 1)
		x.upload.turn <- struct{}{}
	}
	return x
}

// answer is the origin's response.
type answer struct {
	*http.Response
	link string // link that carries it; "" = possibly several
}

// forward serves a request in absolute-form.
func (x *exchange) forward() {
	target, f := parseTarget(x.r)
	switch {
	case f != nil:
		x.refuse(f)
		return
	case mailPort(target.addr):
		x.refuse(noMail())
		return
	case x.p.own(target.addr):
		x.refuse(failureOf(fault.Denied))
		return
	}
	x.fetch(target)
}

// fetch gets the answer to a request and passes it on.
func (x *exchange) fetch(t target) {
	header := x.r.Header.Clone()
	removeHopByHop(header)
	if x.answerHere(header) {
		return
	}
	asked, f := wish(x.r.Context(), x.r.Header)
	if f != nil {
		x.refuse(f)
		return
	}
	offer := upgradeOffer(x.r)
	by := x.client.carrier(x.p, t, x.r)
	// A redirected request is dialed by address; its Host shows which requests it belongs with.
	host, _, _ := splitAuthority(t.host)
	ctx := x.p.paying(flowing(asked, transport.Flow{
		User: x.client.name(), Host: strings.ToLower(strings.TrimSuffix(host, ".")),
	}), x.client)
	if x.r.Method == http.MethodGet && offer == "" {
		defer x.p.transfers.Add(-1)
		if x.p.transfers.Add(1) > maxTransfers {
			ctx = transport.With(ctx, func(o *transport.Options) { o.Undivided = transport.Crowded })
		}
	}
	out := x.request(t, header, offer)
	var used transport.Usage
	defer func() {
		for _, l := range used.Links() {
			x.p.carried(l.Link, l.Bytes)
		}
	}()
	a, err := x.await(func() (*answer, error) {
		ctx := transport.With(httptrace.WithClientTrace(ctx, x.trace()), func(o *transport.Options) { o.Usage = &used })
		resp, err := by.RoundTrip(out.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		a := &answer{Response: resp}
		if links := used.Links(); len(links) == 1 {
			a.link = links[0].Link
		}
		return a, nil
	})
	if err != nil {
		if x.client.opened != "" {
			x.p.Intercept.Forget(x.client.opened)
		}
		x.fail(err)
		return
	}
	defer a.Body.Close()
	if a.StatusCode == http.StatusSwitchingProtocols {
		x.switchProtocols(a, offer)
		return
	}
	x.reply(a)
}

// trace returns the hooks by which interim answers reach the client.
func (x *exchange) trace() *httptrace.ClientTrace {
	trace := &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error { return x.tell(code, http.Header(h)) },
	}
	if x.upload != nil && x.upload.expect {
		x.upload.follow(trace)
	}
	return trace
}

// request returns the request for the origin. offer is the protocol to switch to, "" for none.
func (x *exchange) request(t target, h http.Header, offer string) *http.Request {
	var options []string
	if httpguts.HeaderValuesContainsToken(x.r.Header["Te"], "trailers") && x.r.ProtoAtLeast(1, 1) {
		h.Set("Te", "trailers")
		options = append(options, "TE") // a MUST of RFC 9110 section 10.1.4
	}
	if offer != "" {
		h.Set("Upgrade", offer)
		options = append(options, "Upgrade")
	}
	if options != nil {
		h.Set("Connection", strings.Join(options, ", "))
	}
	if x.upload == nil || !x.upload.expect {
		h.Del("Expect")
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // keeps net/http from adding its own (R27)
	}
	out := &http.Request{
		Method:     x.r.Method,
		URL:        requestURL(t),
		Host:       t.host,
		Header:     h,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	if x.upload != nil {
		out.Body, out.ContentLength = x.upload, x.r.ContentLength
		if out.ContentLength < 0 {
			out.TransferEncoding = []string{"chunked"}
			out.Trailer = x.r.Trailer // filled when the content has been read
			x.upload.cleanTrailer()
		}
	}
	return out
}

// maxInterim bounds the interim answers to one request; net/http lifts its own limits where interim answers are
// forwarded (R36).
const maxInterim = 32

var (
	errSettled      = errors.New("the final response has already begun")
	errManyInterims = errors.New("the origin sends too many interim responses")
)

// interim is a 1xx answer on its way to the client.
type interim struct {
	status int
	header http.Header
	done   chan error
}

// tell sends an interim answer to the client. It is called from any goroutine while await runs and returns once the
// answer is written.
func (x *exchange) tell(status int, h http.Header) error {
	i := interim{status, h, make(chan error, 1)}
	select {
	case x.interims <- i:
		return <-i.done
	case <-x.settled:
		return errSettled
	}
}

// await runs fetch in a goroutine of its own and writes interim answers until it returns. fetch ends early when the
// client leaves: it works under the request's context.
func (x *exchange) await(fetch func() (*answer, error)) (*answer, error) {
	type result struct {
		a   *answer
		err error
	}
	done := make(chan result, 1)
	go func() {
		a, err := fetch()
		done <- result{a, err}
	}()
	defer close(x.settled)
	for {
		select {
		case i := <-x.interims:
			i.done <- x.writeInterim(i.status, i.header)
		case res := <-done:
			return res.a, res.err
		}
	}
}

func (x *exchange) writeInterim(status int, h http.Header) error {
	if x.count++; x.count > maxInterim {
		return errManyInterims
	}
	switch {
	case !x.r.ProtoAtLeast(1, 1): // HTTP/1.0 must not see any (R54)
		return nil
	case status == http.StatusContinue:
		if x.continued {
			return nil
		}
		x.continued = true // WriteHeader also keeps the server from sending its own
	}
	h = h.Clone()
	removeHopByHop(h)
	setAll(x.w.Header(), h)
	x.boundWrite() // a client that takes nothing ends the request
	x.w.WriteHeader(status)
	clear(x.w.Header())
	return nil
}
