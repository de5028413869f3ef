package origin

// net/http's own ClientConn hides the codes of GOAWAY and of a broken connection, and the connection state.
//lint:file-ignore SA1019 see above

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"golang.org/x/net/http2"
)

// Receive windows of an HTTP/2 connection in bytes (RFC 9113 section 5.2), wide enough for long and fast links. The bytes
// that answers hold before anybody reads them belong to the transfer's grant, since transfer.Machine asks for no more than
// the grant can hold. http2 opens its windows once, to the same size for every stream, so they cannot keep an origin from
// sending more than it was asked for; inflow does.
const (
	// connWindow is twice the limit of bytes in flight: bytes that were read take up room until the origin gets the window
	// update.
	connWindow = 2 * maxUnread
	// streamWindow bounds the bytes held of one answer. Longer answers move at half of it per round trip at least: 168 Mbit/s
	// at 100 ms; several ranges in flight fill the connection.
	streamWindow = 4 << 20
	// maxUnread bounds the bytes held of all answers in flight, each counted with its missing bytes. It is above 100 ms x 500
	// Mbit/s = 6.25 MB. Since it is below connWindow, answers that wait for their turn never take the window away from the one
	// that is being read.
	maxUnread = 8 << 20
	// maxOpen bounds the bytes held of an answer to a request that names no last byte. It is small, since a transfer may send
	// such a request without a grant.
	maxOpen = 128 << 10
	// readFrame is the largest frame taken: a quarter of the frames of the default at high rates.
	readFrame = 64 << 10
)

// newHTTP2 returns the settings of HTTP/2 connections. It dials nothing: connections are handed to it.
func newHTTP2() *http2.Transport {
	t, err := http2.ConfigureTransports(&http.Transport{
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: connWindow,
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReadFrameSize:              readFrame,
			StrictMaxConcurrentRequests:   true, // a request waits for a free stream
		},
	})
	if err != nil {
		panic(fmt.Sprintf("origin: a fresh transport takes no HTTP/2: %v", err))
	}
	t.MaxHeaderListSize = maxHead
	return t
}

// negotiate speaks HTTP/2 on a connection whose handshake chose it (RFC 7301).
func (s *stream) negotiate(t *http2.Transport) error {
	tc, ok := s.conn.(*tls.Conn)
	if !ok || tc.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
		return nil
	}
	var err error
	s.inflow = newInflow(tc)
	s.h2, err = t.NewClientConn(s.inflow)
	return err
}
