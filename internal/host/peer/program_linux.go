package peer

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// maxRecent bounds the processes that Programs looks at first.
const maxRecent = 16

// Programs finds the programs at the other ends of connections. The zero value is ready to use. It remembers the
// processes that it found last, since a process that connects often connects again.
type Programs struct {
	mu     sync.Mutex
	recent []int // process IDs, the last found first
}

// Of returns the path of the program that holds the other end of a TCP connection, see Owner; "" if it cannot be
// determined, or if names is not nil and does not have the last part of the path. After that of an interpreter follow a
// space and its script, since scripts differ like programs. It can find only processes whose files this process may
// look at: those of its own user, or all of them with CAP_SYS_PTRACE. Without names it may look at the files of every
// process, which takes milliseconds.
func (p *Programs) Of(local, remote netip.AddrPort, names []string) (string, error) {
	s, err := find(local, remote)
	if err != nil {
		return "", fmt.Errorf("find the program of a connection: %w", err)
	}
	file := fmt.Sprintf("socket:[%d]", s.inode)
	p.mu.Lock()
	recent := slices.Clone(p.recent)
	p.mu.Unlock()
	among := func(pids []int) string {
		for _, pid := range pids {
			if path := program(pid); wanted(path, names) && holds(pid, file) {
				p.found(pid)
				return withScript(path, pid)
			}
		}
		return ""
	}
	if path := among(recent); path != "" {
		return path, nil
	}
	all, err := processes()
	if path := among(all); path != "" {
		return path, nil
	}
	return "", err
}

// Read returns a file below /proc/PID of the process with this program that Of found last, such as maps or cmdline; nil
// if it has ended.
func (p *Programs) Read(path, file string) []byte {
	p.mu.Lock()
	recent := slices.Clone(p.recent)
	p.mu.Unlock()
	i := slices.IndexFunc(recent, func(pid int) bool { return withScript(program(pid), pid) == path })
	if i < 0 {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(recent[i]), file))
	return text
}

func (p *Programs) found(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recent = slices.Insert(slices.DeleteFunc(p.recent, func(o int) bool { return o == pid }), 0, pid)
	p.recent = p.recent[:min(len(p.recent), maxRecent)]
}

// processes returns all process IDs, high ones first: processes that connect have often started recently.
func processes() (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.SortFunc(pids, func(a, b int) int { return b - a })
	if err != nil {
		return pids, fmt.Errorf("look for the program of a connection: %w", err)
	}
	return pids, nil
}

// program returns the path of a process's program, "" if the process is another user's, is a thread of the kernel, or
// has ended.
func program(pid int) string {
	exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(exe, " (deleted)") // an update has replaced it
}

// interpreters run programs that are not their own.
var interpreters = regexp.MustCompile(`^(python|perl|ruby|node|php|lua|tclsh|guile)[0-9.]*$`)

// withScript returns the path of a process's program, and what an interpreter runs.
func withScript(path string, pid int) string {
	if !interpreters.MatchString(filepath.Base(path)) {
		return path
	}
	line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")) // the process may have ended
	if s := script(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")); s != "" {
		return path + " " + s
	}
	return path
}

// script returns the script or module in the command line of an interpreter, as it was typed; "" = none.
func script(args []string) string {
	const longest = 256
	for _, a := range args[1:] {
		switch {
		case a == "-c", a == "-e", a == "-":
			return ""
		case !strings.HasPrefix(a, "-"):
			if len(a) > longest || strings.ContainsFunc(a, func(r rune) bool { return !unicode.IsPrint(r) }) {
				return ""
			}
			return a
		}
	}
	return ""
}

// wanted reports whether a program is one of those named; nil names all.
func wanted(path string, names []string) bool {
	return path != "" && (names == nil || slices.Contains(names, filepath.Base(path)))
}

// holds reports whether a process holds a socket.
func holds(pid int, file string) bool {
	return slices.Contains(sockets(pid), file)
}
