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

// Reloads configures how a running proxy gets another configuration. The zero value disables this.
type Reloads struct {
	Wanted <-chan os.Signal              // SIGHUP
	Load   func() (config.Config, error) // reads and validates it, flags on top
	Level  *slog.LevelVar                // of the log; nil = it stays
}

// live are the keys that a running proxy can apply.
var live = []string{"links", "link", "goal", "log_level"}

// reload applies another configuration, all of it or nothing.
func (d *Daemon) reload(r Reloads) error {
	cfg, err := r.Load()
	if err != nil {
		return fmt.Errorf("the configuration stays as it was: %w", err)
	}
	if keys := fixed(d.out.Settings(), cfg); len(keys) > 0 {
		return fmt.Errorf("the configuration was not reloaded: a change of %s needs a restart", strings.Join(keys, ", "))
	}
	d.out.Reload(cfg)
	if r.Level != nil {
		r.Level.Set(cfg.Level())
	}
	return nil
}

// fixed returns the keys in which two configurations differ and that need a restart to change.
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
