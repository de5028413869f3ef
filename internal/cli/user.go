package cli

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/host/privilege"
)

// userHelp is the part of serve's help about --user.
const userHelp = `With --user, a proxy started as root switches to that user before it reads its configuration or uses the network. It keeps
only the capabilities CAP_NET_ADMIN and CAP_NET_RAW, to bind to links on any kernel and to mark its connections for
"redirect on". The user must be able to read the configuration, and to write to $RUNTIME_DIRECTORY and $STATE_DIRECTORY if
they are set. Without $RUNTIME_DIRECTORY, the control socket is in /run/tributary, where root's commands look for it. A
service manager can do the same: see the systemd units in deploy/.`

// becomeUser returns immediately if name is "" or the user who runs this process. Otherwise it starts the process again
// as that user and returns only if that fails.
func becomeUser(name string) error {
	if name == "" {
		return nil
	}
	if os.Geteuid() == 0 && os.Getenv("RUNTIME_DIRECTORY") == "" {
		// An error means that another proxy has it, or that there is no /run: then this one listens elsewhere.
		if f, err := control.Bequeath(control.System); err == nil {
			defer f.Close()
		}
	}
	err := privilege.Drop(name, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW)
	if errors.Is(err, privilege.ErrAccount) {
		return usageError{fmt.Errorf("--user: %w", err)}
	}
	return err
}
