package origin

// net/http's own ClientConn hides what the codes of GOAWAY and of a broken connection say, and the connection state.
//lint:file-ignore SA1019 see above

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"golang.org/x/net/http2"
)

// Receive windows of an HTTP/2 connection in bytes (RFC 9113 section 5.2). What answers hold before anybody reads them is
// part of the transfer's grant, since no more is asked for than it can hold (transfer.Machine); here it is bounded for each
// connection: a well-behaved origin can make one hold maxUnread, or streamWindow if one answer of unknown length is all
// that was asked for; a hostile one connWindow.
const (
	// connWindow is twice what is to be in flight: http2 announces what was read only once it is as much as is left of the
	// window, so half of it is sure to be open.
	connWindow = 2 * maxUnread
	// streamWindow bounds what one answer holds. Longer answers move at half of it per round trip at least: 168 Mbit/s at
	// 100 ms; several ranges in flight fill the connection.
	streamWindow = 4 << 20
	// maxUnread bounds the sum of what the answers in flight may hold, each counted with what is missing of it. It is
	// above 100 ms x 500 Mbit/s = 6.25 MB. Since it is below connWindow, answers that wait for their turn never take the
	// window away from the one that is being read.
	maxUnread = 8 << 20
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
	s.h2, err = t.NewClientConn(tc)
	return err
}
