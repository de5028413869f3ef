package direct

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// errLinkLost means that a request ended because its link stopped working.
var errLinkLost = errors.New("the link stopped working")

// underway is a request over one link, until the end of its answer. It ends at once when the link dies, so that the
// program can retry instead of waiting until the kernel gives up the connection.
type underway struct {
	of     *PassThrough
	link   string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin registers a request over a link until end is called.
func (p *PassThrough) begin(ctx context.Context, link string) *underway {
	x := &underway{of: p, link: link}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	p.mu.Lock()
	p.under[x] = struct{}{}
	p.mu.Unlock()
	return x
}

// abort ends the requests over a link.
func (p *PassThrough) abort(link string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.under {
		if x.link == link {
			x.cancel(errLinkLost)
		}
	}
}

// end forgets a finished request and releases its context.
func (x *underway) end() {
	x.forget()
	x.cancel(nil)
}

func (x *underway) forget() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	delete(x.of.under, x)
}

// explain returns err, or an error that names the link if the link made the request fail. errNoIdle is returned
// unchanged: nothing was sent.
func (x *underway) explain(err error) error {
	cause := context.Cause(x.ctx)
	if cause == errForgotten && err != nil {
		return cause
	}
	if (cause == errLinkLost || cause == engine.ErrCosts) && !errors.Is(err, errNoIdle) {
		return &engine.AttemptError{Op: "body", Link: x.link, Outcome: fault.LinkLost, Err: cause}
	}
	return err
}

// response ends the request when the content of its answer ends. After a protocol switch the connection is a tunnel,
// and its owner closes it.
func (x *underway) response(resp *http.Response) {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		x.forget()
	case resp.Body == http.NoBody:
		x.end()
	default:
		resp.Body = &underwayBody{resp.Body, x}
	}
}

// underwayBody is the content of an answer.
type underwayBody struct {
	io.ReadCloser
	x *underway
}

// Read implements io.Reader.
func (b *underwayBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.x.end()
	case err != nil:
		err = b.x.explain(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *underwayBody) Close() error {
	err := b.ReadCloser.Close()
	b.x.end()
	return err
}
