package privilege

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// childEnv makes the test binary drop its privileges and print what is left. The value is the account.
const childEnv = "TRIBUTARY_PRIVILEGE_ACCOUNT"

func TestMain(m *testing.M) {
	if account, ok := os.LookupEnv(childEnv); ok {
		os.Exit(child(account))
	}
	os.Exit(m.Run())
}

// child drops all but two capabilities, as serve does, and prints the state of each of its threads and its environment.
func child(account string) int {
	if err := Drop(account, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, fs.ErrPermission) {
			return 4
		}
		return 1
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Printf("%s", text)
	}
	fmt.Printf("Tasks: %d\nPID: %d\nArgs: %q\nHOME: %s\nXDG_CONFIG_HOME: %s\nRUNTIME_DIRECTORY: %s\n", len(tasks), os.Getpid(), os.Args[1:],
		os.Getenv("HOME"), os.Getenv("XDG_CONFIG_HOME"), os.Getenv("RUNTIME_DIRECTORY"))
	return 0
}

// dropped starts the test binary as root, either from a folder that only root may enter or by a command, and returns the status
// of its threads: every value of each line of /proc/PID/status.
func dropped(t *testing.T, account string, by ...string) (pid int, said map[string][]string, err error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("the kernel cannot start the program again under an emulator")
	}
	dir := filepath.Join(t.TempDir(), "folder")
	mode := os.FileMode(0o700)
	if len(by) > 0 {
		mode = 0o755
		if _, err := exec.LookPath(by[0]); err != nil {
			t.Skip("setpriv is not installed: apt-get install util-linux")
		}
	}
	if err := os.Mkdir(dir, mode); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	argv := append(by, program, "some", "words")
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+account, "XDG_CONFIG_HOME=/root/.config", "RUNTIME_DIRECTORY=/run/tributary",
		"GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s", err, &stderr)
	}
	said = map[string][]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(line, ":")
		said[name] = append(said[name], strings.Join(strings.Fields(value), " "))
	}
	return cmd.Process.Pid, said, nil
}

// each reports every thread with a wrong line.
func each(t *testing.T, said map[string][]string, want map[string]string) {
	t.Helper()
	if len(said["Uid"]) == 0 {
		t.Fatal("no thread said anything")
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, got := range said[name] {
			if got != want[name] {
				t.Errorf("%s %q, want %q", name, got, want[name])
			}
		}
		if len(said[name]) == 0 {
			t.Errorf("no line %s", name)
		}
	}
}

const (
	netAdmin = "0000000000001000"
	both     = "0000000000003000" // CAP_NET_ADMIN and CAP_NET_RAW
	none     = "0000000000000000"
)

func TestDropKeepsTwoCapabilities(t *testing.T) {
	pid, said, err := dropped(t, "8080")
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for _, g := range append(slices.Clone(networkGroups), 8080) {
		groups = append(groups, fmt.Sprint(g))
	}
	each(t, said, map[string]string{
		"Uid": "8080 8080 8080 8080", "Gid": "8080 8080 8080 8080", "Groups": strings.Join(groups, " "),
		"CapInh": both, "CapPrm": both, "CapEff": both, "CapAmb": both, "NoNewPrivs": "1",
		"PID": fmt.Sprint(pid), "Args": `["some" "words"]`, "HOME": "/", "XDG_CONFIG_HOME": "", "RUNTIME_DIRECTORY": "/run/tributary",
	})
	if n := len(said["Uid"]); said["Tasks"][0] != fmt.Sprint(n) || n < 2 {
		t.Errorf("%d threads told of %s: a Go program has several", n, said["Tasks"][0])
	}
}

func TestDropToAnAccount(t *testing.T) {
	_, said, err := dropped(t, "nobody")
	if err != nil {
		t.Fatal(err)
	}
	to, err := find("nobody")
	if err != nil {
		t.Fatal(err)
	}
	each(t, said, map[string]string{
		"Uid": strings.TrimSpace(strings.Repeat(fmt.Sprint(to.uid, " "), 4)), "Gid": strings.TrimSpace(strings.Repeat(fmt.Sprint(to.gid, " "), 4)),
		"CapEff": both, "HOME": to.home,
	})
}

// TestDropKeepsNoMoreThanThereIs: root in a container has only few capabilities.
func TestDropKeepsNoMoreThanThereIs(t *testing.T) {
	_, said, err := dropped(t, "8080", "setpriv", "--bounding-set=-net_raw")
	if err != nil {
		t.Fatal(err)
	}
	each(t, said, map[string]string{"Uid": "8080 8080 8080 8080", "CapEff": netAdmin, "CapAmb": netAdmin})
}

func TestDropLeavesTheAccountItself(t *testing.T) {
	_, said, err := dropped(t, "8080", "setpriv", "--reuid=8080", "--regid=8080", "--clear-groups")
	if err != nil {
		t.Fatal(err)
	}
	each(t, said, map[string]string{"Uid": "8080 8080 8080 8080", "CapEff": none, "NoNewPrivs": "0"})
}

func TestDropIsForRoot(t *testing.T) {
	_, _, err := dropped(t, "8081", "setpriv", "--reuid=8080", "--regid=8080", "--clear-groups")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 4 || !strings.Contains(err.Error(), "start it as root") {
		t.Errorf("another user: %v", err)
	}
}

func TestFindRefuses(t *testing.T) {
	for _, account := range []string{"", "root", "0", "-1", "no-such-user", "4294967295", "80x"} {
		if to, err := find(account); !errors.Is(err, ErrAccount) {
			t.Errorf("%q: %+v, %v", account, to, err)
		}
	}
}
