package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// strangerError reports that another user listens on a socket. That user's answers are not used.
type strangerError struct {
	path string
	uid  uint32
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("user %d listens on %s and is neither you nor root, so the socket is not trusted: name the socket of your own proxy with --control",
		e.uid, e.path)
}

// dial connects to the socket at path. If another user listens there, the error is a *strangerError.
func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	cred, err := peer(c)
	if err == nil && !believed(cred.Uid, uint32(os.Getuid()), filepath.Dir(path)) {
		err = &strangerError{path, cred.Uid}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// believed reports whether a client of the user own may trust a server of the user server: its own server and root's.
// Root also trusts a server whose socket is in a folder that belongs to the server's user and that no other user may
// write to. This covers the system service, which has a user of its own, and the proxy of a user who calls sudo.
func believed(server, own uint32, folder string) bool {
	if server == own || server == 0 {
		return true
	}
	info, err := os.Lstat(folder)
	return own == 0 && err == nil && info.IsDir() && info.Sys().(*syscall.Stat_t).Uid == server &&
		info.Mode().Perm()&0o022 == 0
}

// peer returns the user at the other end of a connection: the user who opened it or, for a client, the user who listens
// (unix(7), SO_PEERCRED).
func peer(c net.Conn) (*unix.Ucred, error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var serr error
	if err := raw.Control(func(fd uintptr) {
		cred, serr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET,
			unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, serr
}
