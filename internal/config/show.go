package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Setting is the value of one key.
type Setting struct {
	Key    string `json:"key"` // "listen", "link.wlan0.dns"
	Value  any    `json:"value"`
	Origin string `json:"origin"` // see File.Origin

	name, line string // name in its table, and line in TOML
}

// Settings returns every key with its value. The keys of the tables come last; unset ones are omitted.
func (f *File) Settings() ([]Setting, error) {
	var all []Setting
	add := func(v reflect.Value, prefix ...string) error {
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("toml")
			x := v.Field(i)
			if name == "link" || name == "relay" || len(prefix) > 0 && x.IsZero() {
				continue
			}
			s := Setting{Key: append(toml.Key(prefix), name).String(), Value: plain(x), name: name}
			s.Origin = f.Origin(s.Key)
			var b bytes.Buffer
			if err := toml.NewEncoder(&b).Encode(map[string]any{name: s.Value}); err != nil {
				return fmt.Errorf("%s: %w", s.Key, err)
			}
			s.line = strings.TrimSpace(b.String())
			all = append(all, s)
		}
		return nil
	}
	if err := add(reflect.ValueOf(f.Config)); err != nil {
		return nil, err
	}
	if err := add(reflect.ValueOf(f.Relay), "relay"); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Link)) {
		if err := add(reflect.ValueOf(f.Link[name]), "link", name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// plain returns a value as JSON and TOML write it.
func plain(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case fmt.Stringer:
		return x.String()
	default:
		if v.Kind() == reflect.Slice && v.Len() == 0 {
			return []string{}
		}
		return x
	}
}

// WriteTOML writes the configuration as a file, with the origin of each value. Loading the file gives the same
// configuration.
func (f *File) WriteTOML(w io.Writer) error {
	all, err := f.Settings()
	if err != nil {
		return err
	}
	tables := map[string]bool{}
	var b strings.Builder
	for _, s := range all {
		if table := strings.TrimSuffix(s.Key, "."+s.name); table != s.Key && !tables[table] {
			tables[table] = true
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		fmt.Fprintf(&b, "%-40s # %s\n", s.line, strings.NewReplacer("\n", "?", "\r", "?").Replace(s.Origin))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Link)) {
		if key := (toml.Key{"link", name}).String(); !tables[key] { // a table without keys still names the link
			fmt.Fprintf(&b, "\n[%s]\n", key)
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the settings with their origins.
func (f *File) WriteJSON(w io.Writer) error {
	all, err := f.Settings()
	if err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"file": f.Path, "settings": all})
}
