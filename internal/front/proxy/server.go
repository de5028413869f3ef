package proxy

import (
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tributary-http/tributary/internal/front/cutoff"
	"github.com/tributary-http/tributary/internal/front/inbound"
)

// Limits on the requests of clients (R12, R64, R189).
const (
	maxHeader  = 64 << 10 // bytes of request line and header section; beyond it net/http answers 431
	maxTarget  = 16 << 10 // bytes of the request target
	maxLines   = 200      // field lines
	headerTime = 10 * time.Second
	idleTime   = 120 * time.Second
)

// NewServer returns the server for p: HTTP/1 only, with limits on slow and large header sections and none on how long a
// download takes. The caller listens, on literal loopback addresses unless configured otherwise, and shuts it down;
// p.Shutdown ends the tunnels, which the server does not track.
func NewServer(p *Proxy) *inbound.Server {
	s := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       slowTime, // of content that the server drops by itself; upload sets deadlines of its own
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug), // may quote requests
		Protocols:         new(http.Protocols),
		ConnContext:       p.accept,
		ConnState:         p.connState,
	}
	s.Protocols.SetHTTP1(true)
	cutoff.Show(s)
	front := inbound.NewServer(s)
	front.Ends, front.TLS = p.ends, p.speaksTLS
	return front
}

// speaksTLS serves a client that takes this proxy for one that speaks TLS, as wget2 does with every proxy for https, if
// it accepts a certificate of the authority, and reports it otherwise.
func (p *Proxy) speaksTLS(nc net.Conn, early []byte) (c net.Conn, err error) {
	if p.Intercept != nil {
		if c, err = p.Intercept.Front(nc, early); c != nil {
			return c, nil
		}
	}
	name := "a client"
	if c, known := p.clients.Load(nc); known && p.Program != nil {
		if path := c.(*client).program(p)(); path != "" {
			name = filepath.Base(path)
		}
	}
	p.Log.Debug("a client speaks TLS to the proxy", "program", name)
	if p.Refused != nil {
		p.Refused(name, "it speaks TLS to the proxy, whose address begins with http://")
	}
	return nil, err
}

// checkRequest refuses requests that are invalid in every form. HTTP/2 is valid only in opened tunnels.
func checkRequest(r *http.Request, opened bool) *failure {
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	switch {
	case r.ProtoMajor != 1 && !opened: // net/http lets the preface of HTTP/2 through
		return &failure{
			http.StatusHTTPVersionNotSupported, "http_request_error", 0,
			"This proxy does not support HTTP/2 from clients. Configure the client to use HTTP/1.1 with proxies.",
		}
	case len(r.RequestURI) > maxTarget:
		return &failure{
			http.StatusRequestURITooLong, "http_request_error", 0,
			"The URL is longer than 16 KiB. Use a shorter one.",
		}
	case lines > maxLines:
		return &failure{
			http.StatusRequestHeaderFieldsTooLarge, "http_request_error", 0,
			"The request has more than 200 header lines. Send fewer.",
		}
	}
	return nil
}
