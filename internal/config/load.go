package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// DefaultPath returns where the file is looked for when the user names none: tributary/config.toml in
// $XDG_CONFIG_HOME, by default ~/.config; "" if there is no such place.
func DefaultPath(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // XDG Base Directory Specification: a relative path is invalid and ignored
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "tributary", "config.toml")
}

// Find returns the path of the file that Load reads, "" if it takes the defaults.
func Find(path string, getenv func(string) string) string {
	if path != "" {
		return path
	}
	path = DefaultPath(getenv)
	if _, err := os.Stat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// Load returns the defaults overlaid with the file. With path "" it is the one at DefaultPath, and it is no error if
// that does not exist. The result is not validated: flags come on top first.
func Load(path string, getenv func(string) string) (Config, error) {
	optional := path == ""
	if optional {
		if path = DefaultPath(getenv); path == "" {
			return Default(), nil
		}
	}
	text, err := os.ReadFile(path)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	c, err := Parse(string(text))
	if err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse returns the defaults overlaid with the text of a file. A key that it does not know is an error.
func Parse(text string) (Config, error) {
	c := Default()
	md, err := toml.Decode(text, &c)
	if err != nil {
		return Config{}, err
	}
	switch md.Type("link") { // "" without the key and for [link.NAME] alone
	case "", "Hash":
	default: // Decode passes over it
		return Config{}, errors.New(`"link" is the name of the tables: write links = [...] for the list of --link`)
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		names := make([]string, len(unknown))
		for i, k := range unknown {
			names[i] = k.String()
		}
		return Config{}, fmt.Errorf("unknown keys: %s", strings.Join(names, ", "))
	}
	return c, nil
}
