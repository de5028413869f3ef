package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// relayTable returns the table that AddRelay writes.
func relayTable(address string) string {
	return fmt.Sprintf("[relay]\naddress = %q\nmode = %q\n", address, RelayTunnels)
}

// ErrByHand reports that a file cannot be changed without the risk of breaking it.
var ErrByHand = errors.New("edit the configuration yourself")

// AddRelay adds a relay to the text of a configuration and leaves all other lines unchanged.
func AddRelay(text, address string) (string, error) {
	before, err := Parse(text)
	if err != nil {
		return "", err
	}
	want := before
	want.Relay.Address, want.Relay.Mode = address, RelayTunnels
	switch {
	case reflect.DeepEqual(before, want):
		return text, nil
	case !reflect.DeepEqual(before.Relay, Default().Relay):
		return "", fmt.Errorf("%w, which already has a [relay] table:\n\n%s", ErrByHand, relayTable(address))
	}
	after := text
	if after != "" && !strings.HasSuffix(after, "\n") {
		after += "\n"
	}
	if after != "" {
		after += "\n"
	}
	after += relayTable(address)
	if got, err := Parse(after); err != nil || !reflect.DeepEqual(got, want) {
		return "", fmt.Errorf("%w, add:\n\n%s", ErrByHand, relayTable(address))
	}
	return after, nil
}

// RemoveRelay removes the lines that AddRelay added. A text without the relay is returned unchanged.
func RemoveRelay(text, address string) (string, error) {
	before, err := Parse(text)
	if err != nil {
		return "", err
	}
	if before.Relay.Address != address {
		return text, nil
	}
	want := before
	want.Relay.Address, want.Relay.Mode = "", Default().Relay.Mode
	start, rest, found := strings.Cut(text, relayTable(address))
	if strings.HasSuffix(start, "\n\n") {
		start = start[:len(start)-1]
	}
	after := start + rest
	if got, err := Parse(after); !found || err != nil || !reflect.DeepEqual(got, want) {
		return "", fmt.Errorf("%w: remove the relay %s", ErrByHand, address)
	}
	return after, nil
}

// Edit changes the file at path, or the default one (see [Find]). A missing file counts as empty. A file that becomes
// empty is removed, together with its folder if that is empty too. Edit returns the path.
func Edit(path string, getenv func(string) string, how func(text string) (string, error)) (string, error) {
	if path == "" {
		if path = DefaultPath(getenv); path == "" {
			return "", errors.New("no place for a configuration file: set HOME, or name a file with --config")
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a symbolic link stays a link
	}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	exists := err == nil
	after, err := how(string(b))
	if err != nil {
		return path, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case after == string(b):
		return path, nil
	case after == "":
		if err := os.Remove(path); err != nil {
			return path, err
		}
		_ = os.Remove(filepath.Dir(path)) // fails unless it is empty
		return path, nil
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); exists && err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return path, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-")
	if err != nil {
		return path, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(after)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return path, err
	}
	return path, os.Rename(f.Name(), path)
}
