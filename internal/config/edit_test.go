package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAddAndRemoveRelay(t *testing.T) {
	const address = "relay.example:443"
	for _, text := range []string{
		"", "budget = \"64MiB\"\n", "# mine\nbudget = \"64MiB\"\n\n[link.wifi]\nmetered = true # costs\n", "\n\n# nothing\n",
	} {
		with, err := AddRelay(text, address)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Parse(with); err != nil || c.Relay.Address != address || c.Relay.Mode != RelayTunnels {
			t.Errorf("%q: %+v, %v", with, c.Relay, err)
		}
		if again, err := AddRelay(with, address); again != with || err != nil {
			t.Errorf("once more: %q, %v", again, err)
		}
		if other, err := RemoveRelay(with, "other.example:443"); other != with || err != nil {
			t.Errorf("another one is removed: %q, %v", other, err)
		}
		if without, err := RemoveRelay(with, address); without != text || err != nil {
			t.Errorf("removed: %q, %v, want %q", without, err, text)
		}
	}
	if got, err := AddRelay("[relay]\nexcept = [\"a.example\"]\n", address); !errors.Is(err, ErrByHand) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := RemoveRelay("[relay]\naddress = \"relay.example:443\" # mine\n", address); !errors.Is(err, ErrByHand) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := AddRelay("x", address); err == nil {
		t.Error("a damaged text")
	}
}

func TestEdit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tributary")
	env := func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return filepath.Dir(dir)
		}
		return ""
	}
	to := func(text string) func(string) (string, error) {
		return func(string) (string, error) { return text, nil }
	}
	path, err := Edit("", env, to("budget = \"64MiB\"\n"))
	if err != nil || path != filepath.Join(dir, "config.toml") {
		t.Fatal(path, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Edit(path, env, to("budget = \"32MiB\"\n")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := Edit("", env, to("")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
