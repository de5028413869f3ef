package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tributary-http/tributary/internal/config"
)

// service says where the packaged service keeps its things.
type service struct {
	config string // file
	state  string // folder
}

// packaged is the service of the packages and of deploy/systemd/tributary.service.
var packaged = service{config: "/etc/tributary/config.toml", state: "/var/lib/tributary"}

// installed reports whether there is a service, as its configuration shows.
func (s service) installed() bool {
	if s.config == "" {
		return false
	}
	_, err := os.Stat(s.config)
	return !errors.Is(err, fs.ErrNotExist)
}

// configFile returns the file that commands about the running proxy read: the one that was named; for root, that of the
// service if there is one; otherwise that of the user, "" if there is none.
func (a *app) configFile(named string) string {
	if named == "" && a.uid == 0 && a.service.installed() {
		return a.service.config
	}
	return config.Find(named, a.getenv)
}

// usedConfig says which file the answer of a command comes from.
func (a *app) usedConfig(path string) {
	switch {
	case path != "":
		fmt.Fprintf(a.stderr, "configuration: %s\n", path)
	case a.service.installed(): // for users without rights
		fmt.Fprintf(a.stderr,
			"configuration: none, the defaults apply; that of the system service is %s (see --config)\n",
			a.service.config)
	case config.DefaultPath(a.getenv) == "":
		fmt.Fprintln(a.stderr, "configuration: none, the defaults apply")
	default:
		fmt.Fprintf(a.stderr, "configuration: none, the defaults apply; it would be %s\n", config.DefaultPath(a.getenv))
	}
}

// serviceState returns the path of a file in the state folder of the service if root asks and the environment names no
// other folder.
func (a *app) serviceState(name string) (path string, ok bool) {
	if a.uid != 0 || !a.service.installed() || a.getenv("STATE_DIRECTORY") != "" {
		return "", false
	}
	return filepath.Join(a.service.state, name), true
}
