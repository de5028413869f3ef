package supervise

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	grace = 2 * time.Second       // time that background processes have to end
	look  = 20 * time.Millisecond // time between two checks for them
)

// Exit codes of shells for commands that cannot be run or were ended by a signal.
const (
	ExitNotRun   = 126
	ExitNotFound = 127
	ExitSignaled = 128 // plus the number of the signal
)

// Bind is a file that takes the place of another one in the mount namespace of the supervisor.
type Bind struct{ Source, Target string }

// Main runs the supervisor: it binds files, runs argv, ends the processes that argv leaves behind, removes a folder,
// and returns the exit code. It must be called on the process's first goroutine, which stays on its thread: when that
// thread dies, the kernel kills the command.
func Main(argv []string, remove string, binds []Bind, say func(error)) int {
	runtime.LockOSThread()
	defer os.RemoveAll(remove)
	control, err := strconv.Atoi(os.Getenv(controlled))
	if err == nil {
		_, err = unix.FcntlInt(uintptr(control), unix.F_SETFD, unix.FD_CLOEXEC)
	}
	if err != nil {
		say(fmt.Errorf("this command is internal to tributary run: %w", err))
		return ExitNotRun
	}
	_ = os.Unsetenv(controlled)
	pipe := os.NewFile(uintptr(control), "control")
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		say(fmt.Errorf("become the reaper of the command's processes: %w", err))
		return ExitNotRun
	}
	// Signals of the terminal reach the command by themselves, all others come over the pipe. But who ends this process
	// means the command.
	own := make(chan os.Signal, 1)
	if c := caught(); len(c) > 0 {
		signal.Notify(make(chan os.Signal, 1), c...)
		if slices.Contains(c, os.Signal(unix.SIGTERM)) {
			signal.Notify(own, unix.SIGTERM)
		}
	}
	if _, err := io.ReadFull(pipe, make([]byte, 1)); err != nil { // proceed
		return ExitNotRun
	}
	if err := bindAll(binds); err != nil {
		say(err)
		return ExitNotRun
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		say(err)
		return ExitNotFound
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &unix.SysProcAttr{Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		say(err)
		return ExitNotRun
	}
	command := p.Pid
	_ = p.Release() // reap waits for it
	signals, orphaned := make(chan unix.Signal), make(chan struct{})
	ended, none := make(chan unix.WaitStatus, 1), make(chan struct{})
	go listen(pipe, signals, orphaned)
	go reap(command, ended, none)
	for {
		select {
		case <-own:
			_ = unix.Kill(command, unix.SIGTERM)
		case s := <-signals:
			_ = unix.Kill(command, s) // it is not reaped yet, or ended is ready
		case <-orphaned:
			endAll(none, 0)
			return ExitSignaled + int(unix.SIGKILL)
		case status := <-ended:
			endAll(none, grace)
			if status.Signaled() {
				return ExitSignaled + int(status.Signal())
			}
			return status.ExitStatus()
		}
	}
}

// bindAll binds files, and drops the capability that this takes: the command does not have it.
func bindAll(binds []Bind) error {
	if len(binds) == 0 {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep the mounts of the command apart: %w", err)
	}
	for _, b := range binds {
		if err := unix.Mount(b.Source, b.Target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", b.Target, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop a capability: %w", err)
	}
	return nil
}

// listen passes on the signals that arrive over the pipe, until the pipe ends.
func listen(pipe io.Reader, signals chan<- unix.Signal, orphaned chan<- struct{}) {
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(pipe, b); err != nil {
			close(orphaned)
			return
		}
		signals <- unix.Signal(b[0])
	}
}

// reap waits for all children, and closes none when no child is left.
func reap(command int, ended chan<- unix.WaitStatus, none chan<- struct{}) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			close(none)
			return
		case pid == command:
			ended <- status
		}
	}
}

// endAll ends all children, and the processes that they leave, which become children: with SIGTERM, and after a while
// with SIGKILL. It cannot end those of another user, such as children of sudo, and does not wait if only such children
// are left.
func endAll(none <-chan struct{}, after time.Duration) {
	told := map[int]bool{}
	kill := time.After(after)
	how := unix.SIGTERM
	if after == 0 {
		how = unix.SIGKILL
	}
	for {
		all := children()
		others := 0
		for _, pid := range all {
			if how == unix.SIGKILL || !told[pid] {
				told[pid] = true
				if unix.Kill(pid, how) == unix.EPERM { // nothing else reaps it, so its number is not reused until then
					others++
				}
				_ = unix.Kill(pid, unix.SIGCONT)
			}
		}
		if how == unix.SIGKILL && len(all) > 0 && others == len(all) {
			return
		}
		select {
		case <-none:
			return
		case <-kill:
			how = unix.SIGKILL
		case <-time.After(look):
		}
	}
}

// children returns the process IDs of this process's children.
func children() (pids []int) {
	entries, _ := os.ReadDir("/proc") // without /proc nothing is found
	self := strconv.Itoa(os.Getpid())
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat") // fails if it ended
		_, rest, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
		if f := bytes.Fields(rest); len(f) > 1 && string(f[1]) == self {
			pids = append(pids, pid)
		}
	}
	return pids
}
