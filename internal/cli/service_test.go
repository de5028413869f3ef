package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// TestService: beside the packaged service, root's commands speak of its file, and all commands name the file that they read.
func TestService(t *testing.T) {
	dir := t.TempDir()
	s := service{config: filepath.Join(dir, "etc.toml"), state: filepath.Join(dir, "state")}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(dir, "home", ".config", "tributary", "config.toml")
	as := func(uid int, args string) (code int, out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		a := &app{
			version: "v9", rawStdout: &stdout, rawStderr: &stderr, uid: uid, service: s,
			getenv: func(name string) string { return map[string]string{"HOME": filepath.Join(dir, "home")}[name] },
			candidates: func(config.Config) ([]discover.Candidate, *link.Resolver, error) {
				return nil, nil, nil
			},
		}
		code = a.run(t.Context(), strings.Fields(args))
		return code, stdout.String(), stderr.String()
	}
	want := func(uid int, args string, code int, text string) {
		t.Helper()
		if got, out, errs := as(uid, args); got != code || !strings.Contains(out+errs, text) {
			t.Errorf("user %d, %s: exit code %d, want %d with %q: %s%s", uid, args, got, code, text, out, errs)
		}
	}
	want(0, "config check", exitOK, "it would be "+own)
	want(0, "config path", exitOK, own)
	write(own, "listen = \"127.0.0.1:1111\"\n")
	want(0, "config check", exitOK, own+": ok")
	write(s.config, "listen = \"127.0.0.1:2222\"\n")
	want(0, "config check", exitOK, s.config+": ok")
	want(0, "config path", exitOK, s.config)
	want(0, "config show", exitOK, `"127.0.0.1:2222"`)
	want(0, "config show", exitOK, "configuration: "+s.config)
	want(0, "config show --config "+own, exitOK, `"127.0.0.1:1111"`)
	want(0, "links", exitOK, "configuration: "+s.config)
	want(1000, "config check", exitOK, own+": ok")
	want(1000, "links", exitOK, "configuration: "+own)
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	want(1000, "config check", exitOK, "that of the system service is "+s.config)
	want(0, "rpc token", exitFailure, "set rpc = \"127.0.0.1:6800\" in "+s.config)
	write(filepath.Join(s.state, "rpc-token"), "0123456789abcdef\n")
	want(0, "rpc token", exitOK, "0123456789abcdef\n")
	want(0, "rpc token", exitOK, "RPC is off")
	write(s.config, "goal = \"fast\"\n")
	want(0, "config check", exitUsage, s.config+":1: goal")
	want(0, "links", exitUsage, s.config+":1: goal")
}
