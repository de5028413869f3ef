package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/link"
)

// Reloads says how a running proxy gets another configuration. The zero value: it does not.
type Reloads struct {
	Wanted <-chan os.Signal              // SIGHUP
	Load   func() (config.Config, error) // reads and validates it, flags on top
	Level  *slog.LevelVar                // of the log; nil = it stays
}

// live are the keys that a running proxy can take on.
var live = []string{"links", "link", "log_level"}

// reload takes on another configuration, all of it or nothing.
func (d *Daemon) reload(r Reloads) error {
	cfg, err := r.Load()
	if err != nil {
		return fmt.Errorf("the configuration stays as it was: %w", err)
	}
	if keys := fixed(*d.live.Load(), cfg); len(keys) > 0 {
		return fmt.Errorf("the configuration stays as it was: a change of %s needs a restart", strings.Join(keys, ", "))
	}
	d.adopt(cfg)
	if r.Level != nil {
		r.Level.Set(cfg.Level())
	}
	return nil
}

// adopt makes cfg the live configuration: links that it does not allow leave running transfers, others join.
func (o *outward) adopt(cfg config.Config) {
	o.live.Store(&cfg)
	o.rates.Set(rates(cfg))
	if o.binder != nil {
		o.dials.Store(o.dialer(o.binder))
	}
	if s, ok := o.source.(interface{ SetOptions(link.Options) }); ok {
		s.SetOptions(options(cfg))
	}
	o.lookAgain()
}

// fixed returns the keys in which two configurations differ though that takes a restart.
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
