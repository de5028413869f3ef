package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testTime bounds every wait; correct code stays far below it.
const testTime = 30 * time.Second

// TestMain makes the test binary the supervisor, or the process that starts it.
func TestMain(m *testing.M) {
	switch part, folder := os.Getenv("TRIBUTARY_PART"), os.Getenv("TRIBUTARY_FOLDER"); part {
	case "supervisor":
		os.Exit(Main(os.Args[1:], folder, testBinds(), func(err error) { fmt.Fprintln(os.Stderr, err) }))
	case "runner":
		code := 0
		s, err := Start(os.Args, append(os.Environ(), "TRIBUTARY_PART=supervisor"), os.Getenv("TRIBUTARY_BIND") != "")
		if err == nil && os.Getenv("TRIBUTARY_NEVER") == "" {
			code, err = s.Run()
		}
		if err == nil {
			s.Close()
		} else {
			fmt.Fprintln(os.Stderr, err)
			code = 99
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// testBinds returns the binds in TRIBUTARY_BIND.
func testBinds() []Bind {
	if source, target, ok := strings.Cut(os.Getenv("TRIBUTARY_BIND"), "="); ok {
		return []Bind{{source, target}}
	}
	return nil
}

// runner is a process that runs a command.
type runner struct {
	*testing.T
	cmd    *exec.Cmd
	folder string
	lines  *bufio.Reader // of its output
}

// needKernel skips a test whose program the kernel cannot start, because it is for another architecture.
func needKernel(t *testing.T) {
	t.Helper()
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("the kernel cannot start this program")
	}
}

// run runs a shell script as a command.
func run(t *testing.T, script string) *runner {
	t.Helper()
	return runArgs(t, "sh", "-c", script)
}

func runArgs(t *testing.T, argv ...string) *runner {
	t.Helper()
	needKernel(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{T: t, cmd: exec.Command(self, argv...), folder: filepath.Join(t.TempDir(), "folder")}
	if err := os.Mkdir(r.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	r.cmd.Env = append(os.Environ(), "TRIBUTARY_PART=runner", "TRIBUTARY_FOLDER="+r.folder)
	r.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // no terminal
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL) })
	return r
}

// line returns the next line of the command's output.
func (r *runner) line() string {
	r.Helper()
	s, err := r.lines.ReadString('\n')
	if err != nil {
		r.Fatalf("no line: %v", err)
	}
	return strings.TrimSpace(s)
}

// pid returns the next line as a process ID.
func (r *runner) pid() int {
	r.Helper()
	n, err := strconv.Atoi(r.line())
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// ended waits for the end of the output, when the last process is gone, and checks that nothing is left.
func (r *runner) ended(code int, pids ...int) {
	r.Helper()
	rest, _ := io.ReadAll(r.lines)
	_ = r.cmd.Wait() // the exit code shows it
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.Errorf("exit code %d, want %d: %s", got, code, rest)
	}
	r.gone(pids...)
}

// gone waits until the folder and some processes are gone.
func (r *runner) gone(pids ...int) {
	r.Helper()
	until := time.Now().Add(testTime)
	for {
		_, err := os.Stat(r.folder)
		alive := !errors.Is(err, fs.ErrNotExist)
		for _, p := range pids {
			alive = alive || unix.Kill(p, 0) == nil
		}
		if !alive {
			return
		}
		if time.Now().After(until) {
			r.Fatalf("left behind: folder %v, processes among %v", err, pids)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestExitCode(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		run(t, script).ended(want)
	}
	runArgs(t, "/nonexistent/command").ended(127)
	folder := t.TempDir()
	runArgs(t, folder).ended(127) // a folder is not a command
}

// TestNever: the command does not start before Run, and nothing is left if Run is not called.
// TestBind: the command sees one file in place of another, has no capability more than its caller, and nobody else sees a change.
func TestBind(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	for _, name := range []string{"old", "new"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	for parent := dir; parent != "/tmp" && parent != "/"; parent = filepath.Dir(parent) {
		_ = os.Chmod(parent, 0o755)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "self") // the folder of the test binary may be closed to other users
	if text, err := os.ReadFile(self); err != nil || os.WriteFile(copied, text, 0o755) != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{0, 4243} {
		if os.Geteuid() != 0 && uid != uint32(os.Geteuid()) {
			continue
		}
		folder, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(copied, "sh", "-c", "cat '"+old+"'; id -u; grep CapEff /proc/self/status")
		cmd.Env = append(os.Environ(), "TRIBUTARY_PART=runner", "TRIBUTARY_FOLDER="+folder, "TRIBUTARY_BIND="+fresh+"="+old)
		caps := "0000000000000000"
		if uid == 0 {
			caps = ""
		} else {
			cmd.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		}
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "does not let you make a user namespace") {
			t.Skip(string(out))
		}
		if want := fmt.Sprintf("new\n%d\nCapEff:\t%s", uid, caps); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%v: %s", err, out)
		}
		if text, err := os.ReadFile(old); string(text) != "old\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// TestDescriptors: the command has the descriptors of its caller, and nothing of the supervisor.
func TestDescriptors(t *testing.T) {
	needKernel(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `exec 3>&1 4>&1 9>&1; exec "$0" sh -c 'echo three >&3; echo four >&4; echo nine >&9; ls /proc/self/fd; env'`, self)
	cmd.Env = append(os.Environ(), "TRIBUTARY_PART=runner", "TRIBUTARY_FOLDER="+t.TempDir())
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.HasPrefix(text, "three\nfour\nnine\n") || strings.Contains(text, "\n100\n") || strings.Contains(text, controlled) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestNever(t *testing.T) {
	t.Setenv("TRIBUTARY_NEVER", "1")
	r := run(t, "echo it ran")
	if line, err := r.lines.ReadString('\n'); err != io.EOF || line != "" {
		t.Errorf("%q, %v", line, err)
	}
	r.ended(0)
}

// TestSignals: a signal reaches the command once, and the command decides how to react.
func TestSignals(t *testing.T) {
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR1} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("it is ignored here, as under nohup: a shell cannot trap it")
			}
			name := strings.TrimPrefix(unix.SignalName(s), "SIG")
			r := run(t, "trap 'echo got; exit 7' "+name+"; echo ready; while :; do sleep 0.01; done")
			r.line()
			if err := r.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if got := r.line(); got != "got" {
				t.Errorf("the command said %q", got)
			}
			r.ended(7)
		})
	}
}

// TestIgnored: signals that the user wants to be ignored (nohup) stay ignored.
func TestIgnored(t *testing.T) {
	needKernel(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec "$0" sh -c 'kill -HUP $$; echo alive'`, self)
	cmd.Env = append(os.Environ(), "TRIBUTARY_PART=runner", "TRIBUTARY_FOLDER="+filepath.Join(t.TempDir(), "none"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "alive\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestBackground: processes that a command leaves in the background end with it, whatever they do to avoid that.
func TestBackground(t *testing.T) {
	r := run(t, `
		sleep 1000 & echo $!
		(trap '' TERM HUP; setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.01; done' &)
		sleep 0.05`)
	r.ended(0, r.pid(), r.pid())
}

// TestKilled: kill -9 of the process that started the supervisor leaves nothing behind.
func TestKilled(t *testing.T) {
	r := run(t, `
		echo $PPID; echo $$
		(trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' &)
		exec sleep 1000`)
	supervisor, command, other := r.pid(), r.pid(), r.pid()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.gone(supervisor, command, other)
	r.ended(-1)
}

// TestSupervisorKilled: without the supervisor, neither the command continues nor what it left in the background.
// TestSupervisorEnded: SIGTERM to the supervisor is one to the command.
func TestSupervisorEnded(t *testing.T) {
	r := run(t, `trap 'exit 7' TERM; echo $PPID; echo $$; while :; do sleep 0.1; done`)
	supervisor, command := r.pid(), r.pid()
	if err := unix.Kill(supervisor, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.ended(7, command)
}

func TestSupervisorKilled(t *testing.T) {
	r := run(t, `
		echo $PPID; echo $$
		(trap '' TERM; setsid sh -c 'echo $$; sleep 1000 & echo $!; wait' &)
		exec sleep 1000`)
	supervisor, command, other, below := r.pid(), r.pid(), r.pid(), r.pid()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(r.lines)
	_ = r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != 99 {
		t.Errorf("exit code %d: %s", got, rest)
	}
	_ = os.Remove(r.folder) // the caller must do this then
	r.gone(command, other, below)
}

// TestBothKilled: what is left without a supervisor is found by the folder that its environment names.
func TestBothKilled(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	var pids []int
	for _, env := range [][]string{{"SSL_CERT_FILE=" + folder + "/ca.pem"}, {"SSL_CERT_FILE=" + folder + "-other/ca.pem"}} {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(os.Environ(), env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
	}
	t.Run("one of them", func(t *testing.T) {
		t.Setenv("TRIBUTARY_TEST", folder+"/file")
		EndLeft(folder)
		if ended(t, pids[0]) {
			t.Error("a process ended its own kin")
		}
	})
	EndLeft(folder)
	var status unix.WaitStatus
	if _, err := unix.Wait4(pids[0], &status, 0, nil); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("%v, %v", status, err)
	}
	if ended(t, pids[1]) {
		t.Error("a process of another folder was ended")
	}
}

// ended reports whether a child has ended.
func ended(t *testing.T, pid int) bool {
	t.Helper()
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got == pid
}

// TestNoDescriptors: the command has none of our files open.
func TestNoDescriptors(t *testing.T) {
	const list = `for f in /proc/$$/fd/*; do printf '%s ' "${f##*/}"; done; echo`
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd) // descriptors that this process inherited itself
	}
	want, err := exec.Command("sh", "-c", list).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, list)
	if got := r.line(); got != strings.TrimSpace(string(want)) {
		t.Errorf("the command has open %s, want %s", got, want)
	}
	r.ended(0)
}
