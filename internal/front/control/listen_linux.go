package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Listen creates the socket with mode 0600, and its folder, if missing, with mode 0700. A socket that a dead process
// left behind is replaced; one that responds belongs to another proxy. Connections from users other than root and the
// proxy's own user are closed immediately.
func Listen(path string, log *slog.Logger) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := checkFolder(dir, os.Getuid()); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &guarded{Listener: l, uid: uint32(os.Getuid()), log: log}, nil
}

// checkFolder refuses a folder in which others could create a socket.
func checkFolder(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.IsDir():
		return fmt.Errorf("control socket: %s is not a folder: remove it, or choose another path with the key control",
			dir)
	case int(owner) != uid && owner != 0:
		return fmt.Errorf("control socket: %s belongs to user %d: choose another path with the key control", dir, owner)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("control socket: others may write into %s: chmod go-w %s", dir, dir)
	}
	return nil
}

// removeStale removes a socket that no process listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("control socket: %s exists but is not a socket: remove it, or choose another path with the key control", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		who := "a process"
		if cred, err := peer(c); err == nil {
			who = fmt.Sprintf("process %d", cred.Pid)
		}
		c.Close()
		return fmt.Errorf("control socket: %s is in use by %s: stop it, or choose another path with the key control",
			path, who)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// maxConns is the number of concurrent connections that each of the two users may have.
const maxConns = 32

// guarded accepts connections from the proxy's own user and root. Mode 0600 alone would be enough on Linux, but not
// every file system keeps it.
type guarded struct {
	net.Listener
	uid  uint32
	log  *slog.Logger
	open [2]atomic.Int32 // connections of the proxy's own user, and of root
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		cred, err := peer(c)
		if err != nil || cred.Uid != g.uid && cred.Uid != 0 {
			g.log.LogAttrs(context.Background(), slog.LevelDebug, "control: refused a connection of another user",
				slog.Any("error", err))
			c.Close()
			continue
		}
		open := &g.open[0]
		if cred.Uid == 0 {
			open = &g.open[1]
		}
		if open.Add(1) > maxConns {
			open.Add(-1)
			c.Close()
			continue
		}
		return &filesConn{UnixConn: c.(*net.UnixConn), closed: sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
}
