package transport

import "github.com/tributary-http/tributary/internal/net/conn"

// Count makes connections opened from now on report to f the bytes that they read from and write to their sockets, with
// the name of the link. f is called from any goroutine, after each read and write, and must not block.
func (t *Transport) Count(f func(link string, read, written int)) { t.count.Store(&f) }

// counted makes a connection over a link count its bytes if Count was called.
func (t *Transport) counted(c *conn.Conn, link string) {
	if f := t.count.Load(); f != nil {
		c.Through(conn.Counter(func(read, written int) { (*f)(link, read, written) }))
	}
}
