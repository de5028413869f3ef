package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/host/privilege"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// systemRelay is the state folder of the relay that "relay setup" installs.
const systemRelay = "/var/lib/tributary-relay"

// stateDirectory is the environment variable with which systemd names a service's state folder.
const stateDirectory = "STATE_DIRECTORY"

// relayServerFile returns the path of the file in which a relay server keeps its keys. For root, it is the file of the
// installed relay, if there is one.
func relayServerFile() string { return statefile.Path(relayEnv, "relay-server.json") }

func relayEnv(name string) string {
	if name == stateDirectory && os.Geteuid() == 0 && os.Getenv(name) == "" && os.Getenv("XDG_STATE_HOME") == "" {
		if _, err := os.Stat(systemRelay); err == nil {
			return systemRelay
		}
	}
	return os.Getenv(name)
}

// relayOwner switches a program that root started to the owner of the state folder, if that is another user, since the
// service could not read files that root leaves there. It starts the program again, with the given capabilities, and
// does not return.
func relayOwner(keep ...int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir := filepath.Dir(relayServerFile())
	var is unix.Stat_t
	if err := unix.Stat(dir, &is); err != nil || is.Uid == 0 {
		return nil // it will be created, or belongs to root
	}
	// Open it as root, since only root may enter the folder in which systemd keeps the state folder of a dynamic user.
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	if err := os.Setenv(stateDirectory, "/proc/self/fd/"+strconv.Itoa(fd)); err != nil {
		return err
	}
	return privilege.Drop(strconv.FormatUint(uint64(is.Uid), 10), keep...)
}

// relayListener returns the socket that systemd opened, or listens on address.
func relayListener(address string) (net.Listener, error) {
	open, err := activation.Listeners()
	switch {
	case err != nil:
		return nil, fmt.Errorf("use the socket from systemd: %w", err)
	case len(open) > 1 || len(open) == 1 && open[0] == nil:
		return nil, errors.New("use the socket from systemd: tributary-relay.socket must have exactly one ListenStream= and no other socket")
	case len(open) == 1:
		return open[0], nil
	case address == "":
		return nil, usageError{errors.New("--listen is missing: name the address on which clients can reach the relay, like :443")}
	}
	ln, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("%w: only root may listen on ports below 1024; choose another port with --listen, or run as root", err)
	}
	return ln, err
}

// serveRelay runs a relay, and serves its metrics on the address pages, if set.
func serveRelay(ctx context.Context, s *relay.Server, listen, pages string) error {
	ln, err := relayListener(listen)
	if err != nil {
		return err
	}
	watched, done := context.WithCancel(context.Background()) // until the end, so that a drain can be watched
	failed := make(chan error, 1)
	if pages == "" {
		failed <- nil
	} else {
		at, err := net.Listen("tcp", pages)
		if err != nil {
			done()
			ln.Close()
			return fmt.Errorf("--metrics: %w", err)
		}
		go func() { failed <- daemon.ServeRelayMetrics(watched, at, s.Status) }()
	}
	s.Log.Info("relay is listening", "address", ln.Addr().String(), "metrics", pages)
	_, _ = sd.SdNotify(false, sd.SdNotifyReady)
	err = s.Serve(ctx, ln)
	done()
	return errors.Join(err, <-failed)
}
