package trust

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// follower says how to recognize programs of a language that verify servers with the system's file of authorities, as
// distributions package them. Elsewhere, the same library brings a list.
type follower struct {
	interpreter string
	library     []string // patterns of its files that may name the system's file
	moved       []string // variables that make it use other libraries
	lists       []string // patterns of what other installations, with a list, leave
}

var python = follower{
	interpreter: "python3",
	library: []string{
		"/usr/lib/python3*/dist-packages/certifi/core.py",
		"/usr/lib/python3*/site-packages/certifi/core.py",
	},
	moved: []string{"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME"},
	lists: []string{
		"~/.local/lib/python3*/site-packages/certifi/cacert.pem",
		"/usr/local/lib/python3*/*-packages/certifi/cacert.pem",
		"~/.local/share/pipx", "~/.local/pipx", "~/.local/share/uv/tools", "$PWD/pyvenv.cfg", "$PWD/*/pyvenv.cfg",
		"$PWD/.*/pyvenv.cfg", "~/miniconda3", "~/anaconda3", "/opt/conda",
	},
}

var perl = follower{
	interpreter: "perl",
	library:     []string{"/usr/share/perl5/LWP/Protocol/https.pm"},
	moved:       []string{"PERL5LIB", "PERLLIB", "PERL_LOCAL_LIB_ROOT"},
	lists: []string{
		"~/perl5", "/usr/local/share/perl/*/LWP/Protocol/https.pm",
		"/usr/local/share/perl/*/Mozilla/CA.pm",
	},
}

// follows reports whether the programs of a language that this environment finds verify servers with a file of the
// system. command is the path or name of one that is about to run.
func (e *environment) follows(f follower, command, file string) bool {
	if slices.ContainsFunc(f.moved, func(name string) bool { return e.get(name) != "" }) ||
		len(matching(f.lists, e.get, systemRoot)) > 0 {
		return false
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(command), "..", "pyvenv.cfg")); err == nil &&
		filepath.Base(command) != command {
		return false // an interpreter or a program of a virtual environment
	}
	for _, dir := range filepath.SplitList(e.get("PATH")) {
		if _, err := os.Stat(filepath.Join(systemRoot, dir, f.interpreter)); err == nil {
			if dir = filepath.Clean(dir); dir != "/usr/bin" && dir != "/bin" {
				return false
			}
			break
		}
	}
	return contain(matching(f.library, e.get, systemRoot), file)
}

// contain reports whether one of files contains a text.
func contain(files []string, text string) bool {
	return slices.ContainsFunc(files, func(path string) bool {
		content, err := os.ReadFile(path)
		return err == nil && bytes.Contains(content, []byte(text))
	})
}
