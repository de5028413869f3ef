package use

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const gateway = "127.0.0.1:8081"

// machine is a user's home and a system's files, in folders of the test.
type machine struct {
	*testing.T
	User
	env map[string]string
}

func newMachine(t *testing.T, uid int) *machine {
	t.Helper()
	base := t.TempDir()
	m := &machine{T: t, env: map[string]string{"HOME": filepath.Join(base, "home"), "SHELL": "/bin/sh"}}
	m.User = User{
		Settings: Settings{Gateway: gateway, Getenv: func(k string) string { return m.env[k] }, UID: uid, Root: filepath.Join(base, "system")},
		Record:   filepath.Join(base, "state", "use.json"),
	}
	for _, dir := range []string{m.env["HOME"], m.Root} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// at returns the path of a file: "~/..." is in the home, others belong to the system.
func (m *machine) at(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(m.env["HOME"], rest)
	}
	return filepath.Join(m.Root, path)
}

func (m *machine) write(path, text string) {
	m.Helper()
	if err := os.MkdirAll(filepath.Dir(m.at(path)), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(m.at(path), []byte(text), 0o640); err != nil {
		m.Fatal(err)
	}
}

// files returns every file and folder in the home and the system, with mode and content.
func (m *machine) files() map[string]string {
	m.Helper()
	all := map[string]string{}
	for _, root := range []string{m.env["HOME"], m.Root} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text := ""
			if info.Mode().IsRegular() {
				b, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				text = string(b)
			}
			name := strings.Replace(strings.Replace(path, m.env["HOME"], "~", 1), m.Root, "", 1)
			all[name] = info.Mode().String() + " " + text
			return nil
		})
		if err != nil {
			m.Fatal(err)
		}
	}
	return all
}

func (m *machine) do(program string) Report {
	m.Helper()
	r, err := m.Do(m.Context(), program, func(Report) error { return nil })
	if err != nil {
		m.Fatal(err)
	}
	return r
}

func (m *machine) undo(program string) Report {
	m.Helper()
	r, err := m.Undo(m.Context(), program)
	if err != nil {
		m.Fatal(err)
	}
	return r
}

func (m *machine) is(path, want string) {
	m.Helper()
	b, err := os.ReadFile(m.at(path))
	if err != nil || string(b) != want {
		m.Errorf("%s: %v\n%q\nwant\n%q", path, err, b, want)
	}
}

const (
	by   = "; tributary use "
	mark = "# Written by tributary use "
)

// comment returns the line that says who wrote the following lines.
func comment(program string) string {
	return mark + program + by + program + " --undo takes it out.\n"
}

// settings are files before and after, with the hosts that the gateway is then allowed to fetch from.
var settings = []struct {
	name, program string
	uid           int
	env           map[string]string
	upstreams     []string
	before, after map[string]string
	hosts         string
}{
	{
		"pip, nothing set", "pip", 1, nil, nil, nil,
		map[string]string{"~/.config/pip/pip.conf": "[global]\n" + comment("pip") + "index-url = http://127.0.0.1:8081/simple/pypi.org/simple/\n"},
		"pypi.org",
	},
	{
		"pip, other settings", "pip", 1, nil, nil,
		map[string]string{"~/.config/pip/pip.conf": "# mine\n[install]\nuser = yes\n[global] \ntimeout = 60\n"},
		map[string]string{"~/.config/pip/pip.conf": "# mine\n[install]\nuser = yes\n[global] \n" + comment("pip") +
			"index-url = http://127.0.0.1:8081/simple/pypi.org/simple/\ntimeout = 60\n"},
		"pypi.org",
	},
	{
		"pip, mirrors", "pip", 1, nil, nil,
		map[string]string{"~/.config/pip/pip.conf": "[global]\nindex-url = https://me:secret@Mirror.example/simple ; mine\n#index-url = https://old.example/\nextra-index-url =\n    https://a.example/simple\n    http://b.example/simple\n    https://c.example:8443/x/\n"},
		map[string]string{"~/.config/pip/pip.conf": "[global]\nindex-url = http://me:secret@127.0.0.1:8081/simple/mirror.example/simple ; mine\n#index-url = https://old.example/\nextra-index-url =\n    http://127.0.0.1:8081/simple/a.example/simple\n    http://b.example/simple\n    http://127.0.0.1:8081/simple/c.example:8443/x/\n"},
		"mirror.example a.example c.example:8443",
	},
	{
		"pip, the old file, and the system's index", "pip", 1, nil, nil,
		map[string]string{"~/.pip/pip.conf": "", "/etc/pip.conf": "[global]\nindex-url = https://system.example/simple/\n"},
		map[string]string{"~/.pip/pip.conf": "[global]\n" + comment("pip") + "index-url = http://127.0.0.1:8081/simple/system.example/simple/\n"},
		"system.example",
	},
	{
		"pip, another upstream", "pip", 1,
		map[string]string{"XDG_CONFIG_HOME": "~/x"},
		[]string{"https://other.example/pypi"},
		nil,
		map[string]string{"~/x/pip/pip.conf": "[global]\n" + comment("pip") + "index-url = http://127.0.0.1:8081/simple/other.example/pypi/\n"},
		"other.example",
	},
	{
		"go, nothing set", "go", 1, nil, nil, nil,
		map[string]string{"~/.config/go/env": comment("go") + "GOPROXY=http://127.0.0.1:8081/https/proxy.golang.org|https://proxy.golang.org,direct\n"},
		"proxy.golang.org",
	},
	{
		"go, mirrors", "go", 1, nil, nil,
		map[string]string{"~/.config/go/env": "GOPROXY=https://old.example\nGOFLAGS=-mod=mod\nGOPROXY=https://a.example/x,http://b.example|https://c.example/,off\n"},
		map[string]string{"~/.config/go/env": "GOPROXY=https://old.example\nGOFLAGS=-mod=mod\nGOPROXY=https://a.example/x,http://b.example|https://c.example/,off\n" + comment("go") +
			"GOPROXY=http://127.0.0.1:8081/https/a.example/x|https://a.example/x,http://b.example|http://127.0.0.1:8081/https/c.example|https://c.example/,off\n"},
		"a.example c.example",
	},
	{
		"docker, nothing set", "docker", 0, nil, nil, nil,
		map[string]string{
			"/etc/docker/certs.d/docker.io/hosts.toml": comment("docker") + "[host.\"http://127.0.0.1:8081\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
			"/etc/docker/daemon.json":                  "{\n  \"registry-mirrors\": [\"http://127.0.0.1:8081\"]\n}\n",
		},
		"docker.io registry-1.docker.io",
	},
	{
		"docker, other settings", "docker", 0, nil, nil,
		map[string]string{
			"/etc/docker/certs.d/docker.io/hosts.toml": "# mine\nserver = \"https://x.example\"\n\n[host.\"https://mirror.example\"]\n",
			"/etc/docker/daemon.json":                  "{\n  \"debug\": true,\n  \"log-opts\": {\"registry-mirrors\": []}\n}",
		},
		map[string]string{
			"/etc/docker/certs.d/docker.io/hosts.toml": "# mine\nserver = \"https://x.example\"\n\n" + comment("docker") + "[host.\"http://127.0.0.1:8081\"]\n  capabilities = [\"pull\", \"resolve\"]\n[host.\"https://mirror.example\"]\n",
			"/etc/docker/daemon.json":                  "{\n  \"registry-mirrors\": [\"http://127.0.0.1:8081\"],\n  \"debug\": true,\n  \"log-opts\": {\"registry-mirrors\": []}\n}",
		},
		"docker.io registry-1.docker.io",
	},
	{
		"docker, mirrors", "docker", 0, nil,
		[]string{"docker.io", "https://ghcr.io/"},
		map[string]string{"/etc/docker/daemon.json": `{"a":{"b":[1]},"registry-mirrors":["https://mirror.example"]}`},
		map[string]string{
			"/etc/docker/certs.d/docker.io/hosts.toml": comment("docker") + "[host.\"http://127.0.0.1:8081\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
			"/etc/docker/certs.d/ghcr.io/hosts.toml":   comment("docker") + "[host.\"http://127.0.0.1:8081\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
			"/etc/docker/daemon.json":                  `{"a":{"b":[1]},"registry-mirrors":["http://127.0.0.1:8081", "https://mirror.example"]}`,
		},
		"docker.io registry-1.docker.io ghcr.io",
	},
	{
		"docker, an empty object", "docker", 0, nil, nil,
		map[string]string{"/etc/docker/daemon.json": "{}"},
		map[string]string{
			"/etc/docker/certs.d/docker.io/hosts.toml": comment("docker") + "[host.\"http://127.0.0.1:8081\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
			"/etc/docker/daemon.json":                  "{\n  \"registry-mirrors\": [\"http://127.0.0.1:8081\"]}",
		},
		"docker.io registry-1.docker.io",
	},
	{
		"containerd", "containerd", 0, nil,
		[]string{"registry.example:5000"},
		nil,
		map[string]string{"/etc/containerd/certs.d/registry.example:5000/hosts.toml": comment("containerd") + "[host.\"http://127.0.0.1:8081\"]\n  capabilities = [\"pull\", \"resolve\"]\n"},
		"registry.example:5000",
	},
	{
		"podman", "podman", 1, nil, nil, nil,
		map[string]string{"~/.config/containers/registries.conf.d/990-tributary.conf": comment("podman") +
			"[[registry]]\n  prefix = \"docker.io\"\n  location = \"docker.io\"\n\n  [[registry.mirror]]\n    insecure = true\n    location = \"127.0.0.1:8081/docker.io\"\n"},
		"docker.io registry-1.docker.io",
	},
	{
		"podman, mirrors", "podman", 0, nil, nil,
		map[string]string{"/etc/containers/registries.conf.d/10.conf": "[[registry]]\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"mirror.example/x\"\n"},
		map[string]string{
			"/etc/containers/registries.conf.d/990-tributary.conf": comment("podman") + "[[registry]]\n  location = \"docker.io\"\n\n  [[registry.mirror]]\n    insecure = true\n" +
				"    location = \"127.0.0.1:8081/docker.io\"\n\n  [[registry.mirror]]\n    location = \"mirror.example/x\"\n",
		},
		"docker.io registry-1.docker.io",
	},
	{
		"hf", "hf", 1,
		map[string]string{"SHELL": "/usr/bin/zsh"},
		nil,
		map[string]string{"~/.zshenv": "export A=b"},
		map[string]string{"~/.zshenv": "export A=b\n" + comment("hf") + "export HF_ENDPOINT=http://127.0.0.1:8081/hf/huggingface.co\nexport HF_HUB_DISABLE_XET=1"},
		"huggingface.co",
	},
	{
		"hf, a mirror", "hf", 1,
		map[string]string{"HF_ENDPOINT": "https://mirror.example/"},
		nil, nil,
		map[string]string{"~/.profile": comment("hf") + "export HF_ENDPOINT=http://127.0.0.1:8081/hf/mirror.example\nexport HF_HUB_DISABLE_XET=1\n"},
		"mirror.example",
	},
	{
		"rustup", "rustup", 1,
		map[string]string{"SHELL": "/bin/bash"},
		nil,
		map[string]string{"~/.bash_profile": "x\n"},
		map[string]string{"~/.bash_profile": "x\n" + comment("rustup") + "export RUSTUP_DIST_SERVER=http://127.0.0.1:8081/https/static.rust-lang.org\n" +
			"export RUSTUP_UPDATE_ROOT=http://127.0.0.1:8081/https/static.rust-lang.org/rustup\n"},
		"static.rust-lang.org",
	},
	{
		"brew", "brew", 1, nil, nil, nil,
		map[string]string{"~/.homebrew/brew.env": comment("brew") + "HOMEBREW_ARTIFACT_DOMAIN=http://127.0.0.1:8081/brew/ghcr.io\n"},
		"ghcr.io",
	},
	{
		"apt", "apt", 0, nil, nil,
		map[string]string{
			"/etc/apt/sources.list":               "# deb https://old.example/ x main\ndeb [signed-by=/x arch=amd64] https://download.example/linux/debian bookworm stable # see https://x.example\ndeb http://plain.example/debian x main\ndeb mirror+https://list.example/x y z\n  deb-src https://src.example/debian/ x main\n",
			"/etc/apt/sources.list.d/a.list":      "deb https://a.example:8443/$(ARCH)/ ./",
			"/etc/apt/sources.list.d/b.sources":   "Types: deb\nURIs: https://b.example/debian http://c.example/x\n https://d.example/y\nSuites: x\nX-Note: https://e.example/\n# https://f.example\n",
			"/etc/apt/sources.list.d/c.list.save": "deb https://g.example x y",
		},
		map[string]string{
			"/etc/apt/sources.list":                   "# deb https://old.example/ x main\ndeb [signed-by=/x arch=amd64] http://127.0.0.1:8081/https/download.example/linux/debian bookworm stable # see https://x.example\ndeb http://plain.example/debian x main\ndeb mirror+https://list.example/x y z\n  deb-src http://127.0.0.1:8081/https/src.example/debian/ x main\n",
			"/etc/apt/sources.list.d/a.list":          "deb http://127.0.0.1:8081/https/a.example:8443/$(ARCH)/ ./",
			"/etc/apt/sources.list.d/b.sources":       "Types: deb\nURIs: http://127.0.0.1:8081/https/b.example/debian http://c.example/x\n http://127.0.0.1:8081/https/d.example/y\nSuites: x\nX-Note: https://e.example/\n# https://f.example\n",
			"/etc/apt/apt.conf.d/99tributary-gateway": comment("apt") + "Acquire::http::Proxy::127.0.0.1 \"DIRECT\";\n",
		},
		"download.example src.example a.example:8443 b.example d.example",
	},
	{
		"dnf", "dnf", 0, nil, nil,
		map[string]string{"/etc/yum.repos.d/a.repo": "[a]\nname=A\nbaseurl=https://a.example/$releasever/$basearch\n  https://b.example/x\ngpgkey=https://c.example/key\n[b]\nmetalink=https://d.example/metalink\n"},
		map[string]string{"/etc/yum.repos.d/a.repo": "[a]\nname=A\nbaseurl=http://127.0.0.1:8081/https/a.example/$releasever/$basearch\n  http://127.0.0.1:8081/https/b.example/x\ngpgkey=https://c.example/key\n[b]\nmetalink=https://d.example/metalink\n"},
		"a.example b.example",
	},
	{
		"conda", "conda", 1, nil, nil, nil,
		map[string]string{"~/.conda/condarc.d/tributary.yml": comment("conda") + "channel_alias: http://127.0.0.1:8081/https/conda.anaconda.org\ndefault_channels:\n" +
			"  - http://127.0.0.1:8081/https/repo.anaconda.com/pkgs/main\n  - http://127.0.0.1:8081/https/repo.anaconda.com/pkgs/r\n"},
		"conda.anaconda.org repo.anaconda.com",
	},
	{
		"conda, a mirror", "conda", 1, nil, nil,
		map[string]string{"~/.condarc": "channels: [conda-forge]\nchannel_alias: \"https://mirror.example/conda\"  # mine\n"},
		map[string]string{"~/.condarc": "channels: [conda-forge]\nchannel_alias: \"http://127.0.0.1:8081/https/mirror.example/conda\"  # mine\n"},
		"mirror.example",
	},
	{
		"nix", "nix", 0, nil, nil,
		map[string]string{"/etc/nix/nix.conf": "substituters = https://old.example\nsubstituters = https://a.example/x s3://b https://cache.example\n"},
		map[string]string{"/etc/nix/nix.conf": "substituters = https://old.example\nsubstituters = https://a.example/x s3://b https://cache.example\n" + comment("nix") +
			"substituters = http://127.0.0.1:8081/https/a.example/x https://a.example/x s3://b http://127.0.0.1:8081/https/cache.example https://cache.example\n"},
		"a.example cache.example",
	},
	{
		"nix of a user", "nix", 1, nil, nil, nil,
		map[string]string{"~/.config/nix/nix.conf": comment("nix") + "substituters = http://127.0.0.1:8081/https/cache.nixos.org https://cache.nixos.org\n"},
		"cache.nixos.org",
	},
}

// uid is the user that the test runs as; cases for root also run as other users, in folders of the test.
func (m *machine) asRoot(uid int) {
	if uid == 0 && os.Geteuid() != 0 {
		m.Skip("not root")
	}
	m.UID = os.Geteuid()
}

func TestSettings(t *testing.T) {
	// Ways to write the same settings: name -> change of each file.
	spellings := map[string]func(string) string{
		"": func(s string) string { return s },
		"CRLF": func(s string) string {
			return strings.ReplaceAll(s, "\n", "\r\n")
		},
		"byte order mark": func(s string) string { return byteOrderMark + s },
		"no end":          func(s string) string { return strings.TrimSuffix(s, "\n") },
	}
	for _, c := range settings {
		for spelling, spell := range spellings {
			if len(c.before) == 0 && spelling != "" {
				continue
			}
			t.Run(c.name+" "+spelling, func(t *testing.T) {
				m := newMachine(t, c.uid)
				if c.uid == 0 {
					m.asRoot(0)
				} else if m.UID = os.Geteuid(); m.UID == 0 {
					m.User.Settings.UID = 0 // files here belong to root; see below for the differences
				}
				maps.Copy(m.env, c.env)
				for k, v := range m.env {
					m.env[k] = strings.Replace(v, "~", m.env["HOME"], 1)
				}
				m.Upstreams = c.upstreams
				asUser := c.uid != 0 && m.UID == 0 && slices.Contains([]string{"podman", "nix"}, c.program)
				if asUser { // another user owns the files that would be written: only plan
					m.UID = 1000
					r, err := m.Plan(c.program)
					if err != nil || len(r.Changes) != 1 {
						t.Fatalf("%+v, %v", r, err)
					}
					for path, want := range c.after {
						if got := strings.Join(r.Changes[0].Added, "\n"); r.Changes[0].Path != m.at(path) || got != strings.ReplaceAll(strings.TrimSpace(want), "\n\n", "\n") {
							t.Errorf("%s: %q", r.Changes[0].Path, got)
						}
					}
					return
				}
				for path, text := range c.before {
					m.write(path, spell(text))
				}
				before := m.files()
				r := m.do(c.program)
				for path, want := range c.after {
					if was, edited := c.before[path]; edited && spelling == "no end" {
						if strings.HasSuffix(was, "\n") {
							want = strings.TrimSuffix(want, "\n")
						}
						m.is(path, want)
					} else if edited && spell(was) != was {
						m.is(path, spell(want))
					} else {
						m.is(path, want)
					}
				}
				for path := range c.before {
					if _, edited := c.after[path]; !edited {
						m.is(path, spell(c.before[path]))
					}
				}
				if got := strings.Join(r.Hosts, " "); got != c.hosts || len(r.Check) == 0 || r.Unchanged() {
					t.Errorf("hosts %q, checks %q, %d changes", got, r.Check, len(r.Changes))
				}
				if c.program == "pip" && !strings.HasSuffix(r.Check[0], "/pip/") {
					t.Errorf("the list of all projects is asked for: %q", r.Check)
				}
				if p, err := m.Plan(c.program); err != nil || !p.Unchanged() {
					t.Errorf("to do: %+v, %v", p, err)
				}
				done := m.files()
				if again := m.do(c.program); !again.Unchanged() || !slices.Equal(again.Hosts, r.Hosts) || !maps.Equal(m.files(), done) {
					t.Errorf("the second time: %+v", again.Changes)
				}
				if undone := m.undo(c.program); undone.Unchanged() {
					t.Error("nothing was undone")
				}
				if after := m.files(); !maps.Equal(after, before) {
					t.Errorf("after undo\n%q\nbefore\n%q", after, before)
				}
				if again := m.undo(c.program); !again.Unchanged() {
					t.Errorf("undone twice: %+v", again)
				}
			})
		}
	}
}

// Another address of the gateway, or another upstream, replaces the previous one; undo restores the original.
func TestSettingsChange(t *testing.T) {
	m := newMachine(t, 1)
	m.asRoot(1)
	m.write("~/.config/pip/pip.conf", "[global]\ntimeout = 1\n")
	before := m.files()
	m.do("pip")
	m.Gateway = "127.0.0.1:9"
	m.Upstreams = []string{"https://other.example/simple"}
	if r := m.do("pip"); len(r.Changes) != 1 || len(r.Changes[0].Removed) != 1 || len(r.Changes[0].Added) != 1 {
		t.Errorf("%+v", r)
	}
	m.is("~/.config/pip/pip.conf", "[global]\n"+comment("pip")+"index-url = http://127.0.0.1:9/simple/other.example/simple/\ntimeout = 1\n")
	m.undo("pip")
	if !maps.Equal(m.files(), before) {
		t.Error(m.files())
	}
}

// Changes by others are kept; only Tributary's lines are removed.
func TestUndoAfterChanges(t *testing.T) {
	for name, c := range map[string]struct{ program, path, before, more, want string }{
		"pip":     {"pip", "~/.config/pip/pip.conf", "[global]\ntimeout = 1\n", "[install]\nuser = yes\n", "[global]\ntimeout = 1\n[install]\nuser = yes\n"},
		"its own": {"conda", "~/.conda/condarc.d/tributary.yml", "", "x: y\n", "x: y\n"},
		"no end":  {"go", "~/.config/go/env", "A=b", "\nC=d\n", "A=b\nC=d\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, 1)
			m.asRoot(1)
			if c.before != "" {
				m.write(c.path, c.before)
			}
			m.do(c.program)
			b, _ := os.ReadFile(m.at(c.path))
			m.write(c.path, string(b)+c.more)
			if r := m.do(c.program); !r.Unchanged() {
				t.Errorf("the second time: %+v", r)
			}
			m.undo(c.program)
			m.is(c.path, c.want)
		})
	}
	t.Run("its lines", func(t *testing.T) {
		m := newMachine(t, 1)
		m.asRoot(1)
		m.do("go")
		m.write("~/.config/go/env", "GOPROXY=http://127.0.0.1:8081/mine\n")
		if _, err := m.Undo(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "GOPROXY=http://127.0.0.1:8081/https/proxy.golang.org") {
			t.Errorf("%v", err)
		}
		m.is("~/.config/go/env", "GOPROXY=http://127.0.0.1:8081/mine\n")
	})
	t.Run("gone", func(t *testing.T) {
		m := newMachine(t, 1)
		m.asRoot(1)
		m.do("go")
		if err := os.RemoveAll(m.at("~/.config")); err != nil {
			t.Fatal(err)
		}
		m.undo("go")
		if r := m.do("go"); r.Unchanged() {
			t.Error("it is not written again")
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, program, path, text string
		upstreams                 []string
		want                      string
	}{
		{"not UTF-8", "pip", "~/.config/pip/pip.conf", "[\x00g\x00", nil, "not in UTF-8"},
		{"not https", "pip", "~/.config/pip/pip.conf", "[global]\n", []string{"http://a.example/simple"}, "not an https URL"},
		{"two", "pip", "~/.config/pip/pip.conf", "", []string{"https://a.example/", "https://b.example/"}, "one --upstream"},
		{"set, and another upstream", "pip", "~/.config/pip/pip.conf", "[global]\nindex-url = https://a.example/\n", []string{"https://b.example/"}, "already"},
		{"somebody's file", "conda", "~/.conda/condarc.d/tributary.yml", "x: y\n", nil, "Tributary did not write it"},
		{"brew's domain", "brew", "~/.homebrew/brew.env", "HOMEBREW_ARTIFACT_DOMAIN=https://x.example\n", nil, "another HOMEBREW_ARTIFACT_DOMAIN"},
		{"no https", "go", "~/.config/go/env", "GOPROXY=off\n", nil, "not an https URL"},
		{"a query", "hf", "~/x", "", []string{"https://a.example/?x=y"}, "characters"},
		{"a command", "hf", "~/.profile", "", []string{"https://a.example/$(id)"}, "characters"},
		{"two lines", "pip", "~/.config/pip/pip.conf", "", []string{"https://a.example/\nx = y"}, "characters"},
		{"no such program", "emacs", "~/x", "", nil, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, 1)
			m.asRoot(1)
			m.Upstreams = c.upstreams
			m.write(c.path, c.text)
			before := m.files()
			if _, err := m.Do(t.Context(), c.program, func(Report) error { return nil }); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if !maps.Equal(m.files(), before) {
				t.Errorf("%q", m.files())
			}
		})
	}
	for name, text := range map[string]string{"no JSON": "{,}", "a list": "[]", "no list": `{"registry-mirrors": "x"}`, "an end": `{"a":1`} {
		if _, err := mirrorEdit(text, layout{newline: "\n"}, "x"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	t.Run("the check fails", func(t *testing.T) {
		m := newMachine(t, 1)
		m.asRoot(1)
		before, failed := m.files(), errors.New("no")
		if _, err := m.Do(t.Context(), "pip", func(Report) error { return failed }); !errors.Is(err, failed) || !maps.Equal(m.files(), before) {
			t.Errorf("%v, %q", err, m.files())
		}
	})
	t.Run("a user, the system's settings", func(t *testing.T) {
		for _, program := range []string{"apt", "dnf", "docker", "containerd"} {
			m := newMachine(t, 1000)
			if _, err := m.Plan(program); err == nil || !strings.Contains(err.Error(), "sudo tributary use "+program) {
				t.Errorf("%s: %v", program, err)
			}
		}
	})
}

// Files, links and folders of other users are not changed, and their content is not trusted.
func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	const stranger = 12345
	for name, prepare := range map[string]func(m *machine, path string){
		"their file": func(m *machine, path string) { _ = os.Lchown(path, stranger, stranger) },
		"their link": func(m *machine, path string) {
			_ = os.Rename(path, path+".real")
			_ = os.Symlink(path+".real", path)
			_ = os.Lchown(path, stranger, stranger)
		},
		"their folder":       func(m *machine, path string) { _ = os.Lchown(filepath.Dir(path), stranger, stranger) },
		"everybody's file":   func(m *machine, path string) { _ = os.Chmod(path, 0o666) },
		"everybody's folder": func(m *machine, path string) { _ = os.Chmod(filepath.Dir(path), 0o777) },
		"a device":           func(m *machine, path string) { _ = os.Remove(path); _ = unix.Mkfifo(path, 0o600) },
		"two names":          func(m *machine, path string) { _ = os.Link(path, path+".other") },
		"a folder":           func(m *machine, path string) { _ = os.Remove(path); _ = os.Mkdir(path, 0o755) },
		"a circle":           func(m *machine, path string) { _ = os.Remove(path); _ = os.Symlink(path, path) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, 0)
			m.write("~/.config/go/env", "A=b\n")
			prepare(m, m.at("~/.config/go/env"))
			before := m.files()
			if _, err := m.Do(context.Background(), "go", func(Report) error { return nil }); err == nil {
				t.Error("accepted")
			} else {
				t.Log(err)
			}
			if !maps.Equal(m.files(), before) {
				t.Errorf("%q\nwas\n%q", m.files(), before)
			}
		})
	}
	t.Run("another user's home", func(t *testing.T) {
		m := newMachine(t, 0)
		m.Record = m.at("~/.local/state/tributary/use.json")
		_ = os.Chown(m.env["HOME"], stranger, stranger)
		if _, err := m.Do(t.Context(), "pip", func(Report) error { return nil }); err == nil {
			t.Error("accepted")
		}
		if _, err := os.Lstat(m.at("~/.config")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("something was made there")
		}
	})
	t.Run("their file's mode and owner stay", func(t *testing.T) {
		m := newMachine(t, 0)
		m.write("~/.config/go/env", "A=b\n")
		if err := os.Chown(m.at("~/.config/go/env"), 0, stranger); err != nil {
			t.Fatal(err)
		}
		m.do("go")
		var is unix.Stat_t
		if err := unix.Stat(m.at("~/.config/go/env"), &is); err != nil || is.Gid != stranger || is.Mode&0o777 != 0o640 {
			t.Errorf("%v, group %d, mode %o", err, is.Gid, is.Mode)
		}
	})
	t.Run("an own link is followed", func(t *testing.T) {
		m := newMachine(t, 0)
		m.write("~/dotfiles/env", "A=b\n")
		_ = os.MkdirAll(m.at("~/.config/go"), 0o755)
		if err := os.Symlink("../../dotfiles/env", m.at("~/.config/go/env")); err != nil {
			t.Fatal(err)
		}
		before := m.files()
		m.do("go")
		if b, _ := os.ReadFile(m.at("~/dotfiles/env")); !strings.Contains(string(b), "GOPROXY") {
			t.Errorf("%q", b)
		}
		m.undo("go")
		if !maps.Equal(m.files(), before) {
			t.Errorf("%q", m.files())
		}
	})
}

// Two programs may have lines in one file, whichever of them created it.
func TestSharedFile(t *testing.T) {
	for _, order := range [][2]string{{"hf", "rustup"}, {"rustup", "hf"}} {
		for _, text := range []string{"", "A=b", "A=b\n"} {
			m := newMachine(t, 1)
			m.asRoot(1)
			if text != "" {
				m.write("~/.profile", text)
			}
			before := m.files()
			m.do("hf")
			m.do("rustup")
			if r := m.do("hf"); !r.Unchanged() {
				t.Errorf("%+v", r)
			}
			m.undo(order[0])
			m.undo(order[1])
			if !maps.Equal(m.files(), before) {
				t.Errorf("%q, %v: %q", text, order, m.files())
			}
		}
	}
}

// A change that was interrupted between two files can be undone, and made again.
func TestInterrupted(t *testing.T) {
	m := newMachine(t, 0)
	m.asRoot(0)
	m.write("/etc/docker/daemon.json", "{}\n")
	before := m.files()
	m.do("docker")
	if err := os.Remove(m.at("/etc/docker/daemon.json")); err != nil { // as if it had not been written yet
		t.Fatal(err)
	}
	m.write("/etc/docker/daemon.json", "{}\n")
	m.undo("docker")
	if !maps.Equal(m.files(), before) {
		t.Errorf("%q", m.files())
	}
}

func TestMasked(t *testing.T) {
	for in, want := range map[string]string{
		"x = https://me:secret@a.example/": "x = https://me:***@a.example/", "https://a.example/x@y:z": "https://a.example/x@y:z",
		"http://:tok@a": "http://:***@a",
	} {
		if got := masked(in); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	m := newMachine(t, 1)
	m.asRoot(1)
	m.write("~/.config/pip/pip.conf", "[global]\nindex-url = https://me:secret@a.example/\n")
	for _, c := range m.do("pip").Changes {
		if strings.Contains(strings.Join(append(c.Removed, c.Added...), ""), "secret") {
			t.Errorf("%+v", c)
		}
	}
	if info, err := os.Stat(m.Record); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record holds passwords: %v, %v", info.Mode(), err)
	}
}
