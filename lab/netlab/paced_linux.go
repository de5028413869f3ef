package netlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Pace is how fast an origin serves each of its connections, as file hosts and mirrors do.
type Pace struct {
	Rate   Bytes // per second
	Burst  Bytes // that a connection gets at full speed in addition, first and again after a rest: a token bucket
	Smooth bool  // the kernel spaces the packets; otherwise the origin sends a piece, then sleeps
	Port   int   // of http, and Port + 1 of https; the next two are used within the origin
}

// pacePiece is how many bytes a paced origin sends at a time.
const pacePiece = 16 << 10

// PacedNginx is an nginx that serves each connection at a limited pace, whatever it asks for.
type PacedNginx struct {
	*Nginx

	pace Pace
}

// StartPacedNginx starts nginx behind a relay that paces connections. It also listens at its own ports, without a pace.
func (l *Lab) StartPacedNginx(ctx context.Context, o NginxOptions, p Pace) (*PacedNginx, error) {
	o.inner = p.Port + 2
	n, err := l.StartNginx(ctx, o)
	if err != nil {
		return nil, err
	}
	paced := &PacedNginx{Nginx: n, pace: p}
	if err := paced.listen(l, p.Port, o.inner); err != nil || n.tls == 0 {
		return paced, err
	}
	return paced, paced.listen(l, p.Port+1, o.inner+1)
}

// Object returns the object of the given size, at the origin's limited pace.
func (p *PacedNginx) Object(size Bytes) (Object, error) {
	o, err := p.Nginx.Object(size)
	o.URL = p.url("http", OriginAddr.String(), p.pace.Port, size)
	return o, err
}

// SecureURL returns the object's https URL.
func (p *PacedNginx) SecureURL(o Object) string {
	return p.url("https", OriginAddr.String(), p.pace.Port+1, o.Size)
}

func (p *PacedNginx) listen(l *Lab, port, inner int) error {
	if err := l.serveTCP(port, func(conn net.Conn) { p.serve(l, conn.(*net.TCPConn), inner) }); err != nil {
		return fmt.Errorf("paced: %w", err)
	}
	return nil
}

// serve relays a connection to nginx. Only what the client gets is paced.
func (p *PacedNginx) serve(l *Lab, client *net.TCPConn, inner int) {
	var conn net.Conn
	err := l.InServer(func() (err error) {
		conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(inner)))
		return err
	})
	if err != nil {
		return
	}
	defer conn.Close()
	from, to := addrPort(client.RemoteAddr()), addrPort(client.LocalAddr())
	// PROXY protocol, version 1 (haproxy.org/download/2.9/doc/proxy-protocol.txt, section 2.1)
	_, err = fmt.Fprintf(conn, "PROXY TCP4 %v %v %d %d\r\n", from.Addr(), to.Addr(), from.Port(), to.Port())
	if err != nil || p.pace.Smooth && smooth(client, p.pace.Rate) != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(conn, client) // an error ends the connection, as its end does
		conn.Close()
		client.Close()
	})
	defer up.Wait()
	defer client.Close()
	if p.pace.Smooth {
		_, _ = io.Copy(client, conn)
		return
	}
	copyPaced(client, conn, p.pace)
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// smooth lets the kernel space the packets of a connection.
func smooth(c syscall.Conn, rate Bytes) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(rate))
	})
	return errors.Join(err, set)
}

// copyPaced copies until the end or an error, at a pace.
func copyPaced(to io.Writer, from io.Reader, p Pace) {
	piece := make([]byte, pacePiece)
	bucket, at := float64(p.Burst), time.Now()
	for {
		n, err := from.Read(piece)
		now := time.Now()
		bucket = min(bucket+float64(p.Rate)*now.Sub(at).Seconds(), float64(p.Burst))
		at = now
		if _, failed := to.Write(piece[:n]); failed != nil || err != nil {
			return
		}
		if bucket -= float64(n); bucket < 0 {
			time.Sleep(time.Duration(-bucket / float64(p.Rate) * float64(time.Second)))
		}
	}
}
