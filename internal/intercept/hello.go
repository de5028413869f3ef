package intercept

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

// Protocols of ALPN.
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// hello is what a client said first.
type hello struct {
	bytes  []byte // all that was read
	isTLS  bool
	server string   // the name that it wants; "" = none
	offers []string // of protocols (ALPN)
}

// speakTime is how long a client may be silent before its server is taken for the one that speaks first.
const speakTime = 2 * time.Second

// Types of TLS records: the first byte of each. A connection begins with a handshake.
const (
	recordAlert     = 21
	recordHandshake = 22
)

var errSeen = errors.New("the ClientHello was read")

// readHello reads what a client says first. What is not TLS is known by its first byte; a client that says nothing waits for its
// server to speak.
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
	// crypto/tls parses it, and stops before it answers.
	err = tls.Server(silent{r}, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h.isTLS, h.server, h.offers = true, info.ServerName, slices.Clone(info.SupportedProtos)
		return nil, errSeen
	}}).Handshake()
	op, failed := errors.AsType[*net.OpError](err)
	if failed && op.Op == "read" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return hello{}, err
	}
	h.bytes = r.seen // also of a hello that cannot be read: the origin may understand it
	return h, nc.SetReadDeadline(time.Time{})
}

// recorded remembers what is read.
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

// silent lets nothing be written: neither an alert nor a close reaches the client.
type silent struct{ *recorded }

// Write implements net.Conn.
func (silent) Write(p []byte) (int, error) { return len(p), nil }

// Close implements net.Conn.
func (silent) Close() error { return nil }

// replayed is a connection from which some bytes were read before. It keeps the last bytes of a handshake.
type replayed struct {
	net.Conn
	from io.Reader
	last []byte // nil = the handshake is over
}

// alertSize is the size of an alert's record that is not encrypted, in bytes.
const alertSize = 7

func replay(nc net.Conn, early []byte) *replayed {
	return &replayed{nc, io.MultiReader(bytes.NewReader(early), nc), make([]byte, 0, 2*alertSize)}
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

// alert returns the alert with which the client has ended the handshake without encryption, 0 if there is none. In TLS 1.3
// OpenSSL does not encrypt one that it sends in place of its first handshake record; crypto/tls takes that for a forged record.
func (r *replayed) alert() tls.AlertError {
	if len(r.last) == alertSize && bytes.HasPrefix(r.last, []byte{recordAlert, 3, 3, 0, 2}) {
		return tls.AlertError(r.last[alertSize-1])
	}
	return 0
}

// NetConn returns the connection itself, as that of a tls.Conn does.
func (r *replayed) NetConn() net.Conn { return r.Conn }
