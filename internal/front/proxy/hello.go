package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"strings"

	"github.com/tributary-http/tributary/internal/front/inbound"
)

const (
	tlsRecord = 5 // bytes before the fragment
	// maxHello bounds how much of a connection is looked at for a ClientHello: a full record.
	maxHello = tlsRecord + 16<<10
	// maxHelloRecords bounds the number of its fragments: one is enough for all but the largest.
	maxHelloRecords = 4
)

// wholeHello reports whether b begins with a whole ClientHello, and whether it may still become one with more bytes.
func wholeHello(b []byte) (whole, possible bool) {
	var message []byte
	for range maxHelloRecords {
		if len(b) > 0 && b[0] != inbound.TLSHandshake {
			return false, false
		}
		if len(b) < tlsRecord {
			return false, true
		}
		n := tlsRecord + int(binary.BigEndian.Uint16(b[3:]))
		if n == tlsRecord || n > maxHello {
			return false, false
		}
		if n > len(b) {
			return false, true
		}
		message = append(message, b[tlsRecord:n]...)
		b = b[n:]
		const header = 4 // type and length
		if len(message) >= header && len(message)-header >= int(message[1])<<16|int(message[2])<<8|int(message[3]) {
			return true, false
		}
	}
	return false, false
}

var errParsed = errors.New("the ClientHello is parsed")

// helloName returns the name of the server that a whole ClientHello names (RFC 6066 section 3), "" if there is none.
// Nothing is decrypted: a ClientHello is sent in the clear, and it is not answered here.
func helloName(b []byte) (name string) {
	config := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errParsed
	}}
	// always fails, by errParsed at best
	_ = tls.Server(&helloConn{r: bytes.NewReader(b)}, config).HandshakeContext(context.Background())
	if name == "" || len(name) > 253 || strings.ContainsFunc(name, notInHost) {
		return ""
	}
	return strings.ToLower(name)
}

// helloConn is a connection that provides a ClientHello and discards the alert that ends the attempt to answer it.
type helloConn struct {
	net.Conn
	r *bytes.Reader
}

// Read implements io.Reader.
func (c *helloConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// Write implements io.Writer.
func (c *helloConn) Write(p []byte) (int, error) { return len(p), nil }
