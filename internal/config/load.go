package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// DefaultPath returns the path of the file that is used if the user does not name one: tributary/config.toml in
// $XDG_CONFIG_HOME, by default ~/.config. It returns "" if neither $XDG_CONFIG_HOME nor $HOME is set.
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

// Find returns the path of the file that Load reads, or "" if it uses the defaults.
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

// File is a configuration that records where its values come from.
type File struct {
	Config
	Path string // "" = there is none

	lines map[string]int    // line numbers of the keys that the file sets
	flags map[string]string // flags that override keys
}

// Load returns the defaults, overridden by the file. With path "" it reads DefaultPath, which may be missing. If
// something cannot be parsed, the error lists all problems, one line each, with the position in the file. Otherwise
// values are not validated yet: apply the flags first, then call Check.
func Load(path string, getenv func(string) string) (*File, error) {
	f := &File{Config: Default(), Path: Find(path, getenv)}
	if f.Path == "" {
		return f, nil
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if all := f.parse(string(text)); len(all) > 0 {
		return nil, f.place(append(all, f.others(all)...))
	}
	return f, nil
}

// others returns the problems of the values that could be read. It ignores the default of a key that could not be read.
func (f *File) others(unread []Problem) []Problem {
	broken := map[string]bool{}
	for _, p := range unread {
		for _, key := range p.keys {
			broken[key] = true
		}
	}
	return slices.DeleteFunc(f.problems(), func(p Problem) bool {
		return slices.ContainsFunc(p.keys, func(key string) bool { return broken[key] })
	})
}

// Parse returns the defaults, overridden by the text of a file. The error lists everything that cannot be parsed.
func Parse(text string) (Config, error) {
	f := &File{Config: Default()}
	if all := f.parse(text); len(all) > 0 {
		return Config{}, f.place(all)
	}
	return f.Config, nil
}

// Override records that a flag set the key.
func (f *File) Override(key, flag string) {
	if f.flags == nil {
		f.flags = map[string]string{}
	}
	f.flags[key] = flag
}

// Check validates the configuration. The error lists every problem with its position, one line each.
func (f *File) Check() error {
	return f.place(f.Config.problems())
}

// Origin returns the source of the value of a key: "default", "FILE:LINE" or "--FLAG".
func (f *File) Origin(key string) string {
	if flag, ok := f.flags[key]; ok {
		return "--" + flag
	}
	if line, ok := f.lines[key]; ok {
		return fmt.Sprintf("%s:%d", f.Path, line)
	}
	return "default"
}

// place prefixes each problem with its position and joins them in the order of the file, those without a line last. It
// returns nil if there are none.
func (f *File) place(all []Problem) error {
	type placed struct {
		line int
		err  error
	}
	found := make([]placed, len(all))
	for i, p := range all {
		err := error(p)
		line := p.line
		for _, key := range p.keys {
			if flag, ok := f.flags[key]; ok {
				err = fmt.Errorf("--%s: %s", flag, p.Text)
				line = 0
				break
			}
			if line == 0 {
				line = f.lines[key]
			}
		}
		switch {
		case line == 0:
		case f.Path == "":
			err = fmt.Errorf("line %d: %w", line, p)
		default:
			err = fmt.Errorf("%s:%d: %w", f.Path, line, p)
		}
		found[i] = placed{line, err}
	}
	slices.SortStableFunc(found, func(a, b placed) int {
		return cmp.Or(cmp.Compare(min(a.line, 1), min(b.line, 1))*-1, cmp.Compare(a.line, b.line))
	})
	errs := make([]error, len(found))
	for i, p := range found {
		errs[i] = p.err
	}
	return errors.Join(errs...)
}
