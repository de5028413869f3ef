package control

import (
	"context"
	"io"
	"net"
	"os"
	"sync"

	"github.com/tributary-http/tributary/internal/host/rights"
)

// maxFiles is the number of open files that a request may carry: a listener for each address family.
const maxFiles = 2

// filesConn is a connection on which requests may carry open files.
type filesConn struct {
	*net.UnixConn
	closed func() // called once by Close

	mu    sync.Mutex
	files []*os.File
	done  bool
}

// Read implements io.Reader. Files that arrive with the bytes are kept for [Files].
func (c *filesConn) Read(b []byte) (int, error) {
	oob := make([]byte, rights.Space(maxFiles))
	n, m, _, _, err := c.ReadMsgUnix(b, oob)
	got := rights.Files(oob[:max(m, 0)])
	c.mu.Lock()
	for _, f := range got {
		if c.done || len(c.files) == maxFiles {
			f.Close()
			continue
		}
		c.files = append(c.files, f)
	}
	c.mu.Unlock()
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF // ReadMsgUnix does not report it
	}
	return max(n, 0), err // ReadMsgUnix returns -1 when it fails
}

// Close implements io.Closer.
func (c *filesConn) Close() error {
	for _, f := range c.take() {
		f.Close()
	}
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.closed()
	return c.UnixConn.Close()
}

func (c *filesConn) take() []*os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.files
	c.files = nil
	return all
}

type connKey struct{}

// ConnContext is for http.Server.ConnContext: it lets handlers call [Files].
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Files returns the open files that were sent with the request of this context. The caller must close them.
func Files(ctx context.Context) []*os.File {
	if c, ok := ctx.Value(connKey{}).(*filesConn); ok {
		return c.take()
	}
	return nil
}
