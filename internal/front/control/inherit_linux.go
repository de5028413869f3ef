package control

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// inheritEnv names the variable with the file descriptor of a socket that root opened for the proxy of another user.
const inheritEnv = "TRIBUTARY_CONTROL_FD"

// Bequeath opens the system's socket, and lets the program that this process executes next find it with [Inherited].
// Root calls it before it becomes another user: root's commands look for a socket at this path, and trust it because
// root listens there. The caller must keep the file open.
func Bequeath(path string) (*os.File, error) {
	dir := filepath.Dir(path)
	l, err := Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	g := l.(*guarded).Listener.(*net.UnixListener)
	g.SetUnlinkOnClose(false)
	f, err := g.File()
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// The user's own commands find it, too. The proxy accepts only the user and root.
	for path, mode := range map[string]os.FileMode{dir: 0o711, path: 0o666} {
		if err == nil {
			err = os.Chmod(path, mode)
		}
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
	}
	if err == nil {
		err = os.Setenv(inheritEnv, strconv.Itoa(int(f.Fd())))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return f, nil
}

// Inherited returns the listener that root opened for this process, nil if there is none.
func Inherited(log *slog.Logger) (net.Listener, error) {
	text, ok := os.LookupEnv(inheritEnv)
	if !ok {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Unsetenv(inheritEnv); err != nil {
		return nil, err
	}
	return &guarded{Listener: l, uid: uint32(os.Getuid()), log: log}, nil
}
