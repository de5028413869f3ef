package intercept

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

// ALPN protocol names.
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// hello is the first message of a client.
type hello struct {
	bytes  []byte // everything that was read
	isTLS  bool
	server string   // requested server name; "" = none
	offers []string // offered protocols (ALPN)
	limits bool     // it limits the size of records (RFC 8449), see Config.Distrusts
}

// recordSizeLimit is the number of that extension.
const recordSizeLimit = 28

// speakTime is how long a client may be silent before the server is assumed to speak first.
const speakTime = 2 * time.Second

// TLS record types: the first byte of each record. A connection begins with a handshake.
const (
	recordAlert     = 21
	recordHandshake = 22
)

var errSeen = errors.New("the ClientHello was read")

// readHello reads the first message of a client. It recognizes a protocol other than TLS by the first byte; a client
// that sends nothing is waiting for its server to speak.
func readHello(nc net.Conn, early []byte) (hello, error) {
	r := &recorded{Conn: nc, from: io.MultiReader(bytes.NewReader(early), nc)}
	if err := nc.SetReadDeadline(time.Now().Add(speakTime)); err != nil {
		return hello{}, err
	}
	first := make([]byte, 1)
	_, err := io.ReadFull(r, first)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return hello{}, nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return hello{}, err
	}
	if first[0] != recordHandshake {
		return hello{bytes: r.seen}, nc.SetReadDeadline(time.Time{})
	}
	if err := nc.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return hello{}, err
	}
	h := hello{}
	r.from = io.MultiReader(bytes.NewReader(first), r.from)
	r.seen = nil
	// crypto/tls parses the message, and stops before it answers.
	err = tls.Server(silent{r}, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h.isTLS, h.server, h.offers = true, info.ServerName, slices.Clone(info.SupportedProtos)
		h.limits = slices.Contains(info.Extensions, recordSizeLimit)
		return nil, errSeen
	}}).Handshake()
	op, failed := errors.AsType[*net.OpError](err)
	if failed && op.Op == "read" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return hello{}, err
	}
	h.bytes = r.seen // also if the message cannot be parsed: the origin may understand it
	return h, nc.SetReadDeadline(time.Time{})
}

// recorded is a connection that records the bytes read from it.
type recorded struct {
	net.Conn
	from io.Reader
	seen []byte
}

// Read implements net.Conn.
func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.seen = append(r.seen, p[:n]...)
	return n, err
}

// silent discards everything that is written: neither an alert nor a close reaches the client.
type silent struct{ *recorded }

// Write implements net.Conn.
func (silent) Write(p []byte) (int, error) { return len(p), nil }

// Close implements net.Conn.
func (silent) Close() error { return nil }

// replayed is a connection that first returns bytes that were already read from it. It keeps the last bytes of a
// handshake.
type replayed struct {
	net.Conn
	from io.Reader
	last []byte // nil = the handshake is complete
}

// alertSize is the size of the record of an unencrypted alert, in bytes.
const alertSize = 7

func replay(nc net.Conn, early []byte) *replayed {
	return &replayed{nc, io.MultiReader(bytes.NewReader(early), nc), make([]byte, 0, 2*alertSize)}
}

// serve does the handshake with the client.
func (r *replayed) serve(ctx context.Context, leaf *tls.Certificate, offer []string) (*tls.Conn, error) {
	c := tls.Server(r, &tls.Config{
		Certificates: []tls.Certificate{*leaf}, NextProtos: offer, MinVersion: tls.VersionTLS12,
		SessionTicketsDisabled: true,
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	r.last = nil
	return c, nil
}

// Read implements net.Conn.
func (r *replayed) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.last != nil {
		r.last = append(r.last, p[max(n-alertSize, 0):n]...)
		r.last = append(r.last[:0], r.last[max(len(r.last)-alertSize, 0):]...)
	}
	return n, err
}

// alert returns the unencrypted alert with which the client ended the handshake, or 0 if there is none. In TLS 1.3,
// OpenSSL does not encrypt an alert that it sends in place of its first handshake record; crypto/tls takes it for a
// forged record.
func (r *replayed) alert() tls.AlertError {
	if len(r.last) == alertSize && bytes.HasPrefix(r.last, []byte{recordAlert, 3, 3, 0, 2}) {
		return tls.AlertError(r.last[alertSize-1])
	}
	return 0
}

// NetConn returns the underlying connection, like the method of tls.Conn.
func (r *replayed) NetConn() net.Conn { return r.Conn }
