package relay

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// lane makes a lane over a link, in place of an old one that is silent.
func (c *Client) lane(ctx context.Context, v *visit, p *place, id, old uint32) {
	conn, raw, err := c.dial(ctx, v, p.link, id)
	if err == nil {
		if err = v.add(id, conn, raw, c.counter(p.link.Name)); err != nil {
			raw.Close()
		}
	}
	stale, err := c.made(v, p, id, old, err)
	if err == nil {
		c.log.Debug("relay lane made", "link", p.link.Name)
		if old != 0 {
			v.remove(old)
		}
		if stale {
			v.remove(id)
		}
	} else {
		c.log.Debug("no relay lane over this link", "link", p.link.Name, "error", err)
	}
	signal(c.wake)
}

// counter returns the counter of the bytes of a link's lanes.
func (c *Client) counter(link string) *atomic.Int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.carried[link]
	if n == nil {
		n = new(atomic.Int64)
		c.carried[link] = n
	}
	return n
}

// made records that a lane was made, or why not. A lane that has already ended counts as one that could not be made.
// stale means that the lane is no longer needed.
func (c *Client) made(v *visit, p *place, id, old uint32, failure error) (stale bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.dialing = false
	if failure == nil && !v.has(id) {
		failure = errEnded
	}
	p.failure = failure
	if failure != nil {
		p.pause = min(max(2*p.pause, firstRetry), lastRetry)
		if old != 0 { // the link has something to carry that would otherwise wait
			p.pause = firstRetry
		}
		p.retry = time.Now().Add(p.pause)
	} else {
		p.lanes, p.pause, p.retry = append(p.lanes, id), 0, time.Time{}
	}
	return c.current != v || c.at[p.link.Name] != p, failure
}

var (
	errRestarted = errors.New("the relay has forgotten the session")
	errFull      = errors.New("the relay refuses further connections")
	errEnded     = errors.New("the connection to the relay ended at once")
)

// dial connects to the relay over a link and sends the hello. raw is the connection below TLS, conn the one above.
func (c *Client) dial(ctx context.Context, v *visit, l link.Link, id uint32) (conn, raw net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	dialed, _, err := l.Dial(ctx, "tcp", c.address)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			dialed.Close()
		}
	}()
	defer context.AfterFunc(ctx, func() { dialed.Close() })()
	t := tls.Client(dialed, c.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	joined := v.joined
	c.mu.Unlock()
	hello := make([]byte, 0, helloSize)
	if joined {
		hello = append(hello, helloJoin)
	} else {
		hello = append(hello, helloNew)
	}
	hello = append(append(hello, v.id[:]...), v.secret[:]...)
	hello = binary.BigEndian.AppendUint32(hello, id)
	mac, err := proof(t.ConnectionState(), v.secret[:], hello)
	if err != nil {
		return nil, nil, err
	}
	if _, err := t.Write(append(hello, mac...)); err != nil {
		return nil, nil, err
	}
	var reply [replySize]byte
	if _, err := io.ReadFull(t, reply[:]); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	epoch := [8]byte(reply[1:])
	known := reply[0] == replyOK && (!v.joined || v.epoch == epoch)
	if known {
		v.joined, v.epoch = true, epoch
	}
	c.mu.Unlock()
	switch {
	case known:
		return t, dialed, ctx.Err()
	case reply[0] == full:
		return nil, nil, errFull
	}
	v.end(errRestarted)
	return nil, nil, errRestarted
}
