package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/config"
)

// Reloads configures how a running proxy reloads its configuration. The zero value disables reloading.
type Reloads struct {
	Wanted <-chan os.Signal              // SIGHUP
	Load   func() (config.Config, error) // reads and validates the configuration, with the flags on top
	Level  *slog.LevelVar                // log level to update; nil = leave the level alone
}

// live lists the keys that a running proxy can apply.
var live = []string{"links", "link", "goal", "log_level"}

// Reload applies a new configuration, either completely or not at all.
func (d *Daemon) Reload(r Reloads) error {
	cfg, err := r.Load()
	if err != nil {
		return fmt.Errorf("the configuration stays as it was: %w", err)
	}
	if keys := fixed(d.out.Settings(), cfg); len(keys) > 0 {
		return fmt.Errorf("the configuration was not reloaded: a change of %s needs a restart",
			strings.Join(keys, ", "))
	}
	d.out.Reload(cfg)
	if r.Level != nil {
		r.Level.Set(cfg.Level())
	}
	return nil
}

// fixed returns the keys that differ between two configurations and need a restart to change.
func fixed(a, b config.Config) (keys []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		key := x.Type().Field(i).Tag.Get("toml")
		if !slices.Contains(live, key) && !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}
