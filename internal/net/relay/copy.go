package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyBuffer is how many bytes are read from an origin at once.
const copyBuffer = 32 << 10

// firstRead is how many bytes are read while the room of a stream is unknown.
const firstRead = 4 << 10

// metered reserves bytes before it writes them.
type metered struct {
	ctx context.Context
	a   *account
	w   io.Writer
}

func (m metered) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), copyBuffer)]
		if err := m.a.reserve(m.ctx, len(part)); err != nil {
			return n, err
		}
		written, err := m.w.Write(part)
		if n += written; err != nil {
			return n, err
		}
		p = p[len(part):]
	}
	return n, nil
}

// send sends the data that a socket receives over a stream, until the socket's end. It holds a buffer only while there
// is something to copy: thousands of streams wait most of the time, for bytes or for room.
func (c *Conn) send(ctx context.Context, a *account, from *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	room := firstRead
	for {
		var buf *[bulkBuffer]byte
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) (done bool) {
			buf = c.s.buffers.Get().(*[bulkBuffer]byte)
			for {
				if n, failed = unix.Read(int(fd), buf[:min(room, copyBuffer)]); !errors.Is(failed, syscall.EINTR) {
					break
				}
			}
			if errors.Is(failed, syscall.EAGAIN) {
				c.s.buffers.Put(buf)
				buf, failed = nil, nil
				return false
			}
			return true
		})
		if err = errors.Join(err, failed); err == nil && n > 0 {
			if err = a.reserve(ctx, n); err == nil {
				room, err = c.push(buf[:n])
			}
		}
		if buf != nil {
			c.s.buffers.Put(buf)
		}
		if err != nil || n <= 0 {
			return err
		}
		if room <= 0 {
			room = firstRead
			if err := c.wait(c.writable, &c.deadline.write); err != nil {
				return err
			}
		}
	}
}
