package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// forwarded are the signals that are passed on to the command.
var forwarded = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// controlled is the variable with the descriptor of the pipe in the supervisor. The command does not see it.
const controlled = "TRIBUTARY_CONTROL"

// highDescriptor returns a copy of a file, for a child, whose descriptor is so high that it replaces none that the
// caller of this process hands to the command: shells and make use 3 to 9.
func highDescriptor(f *os.File) (int, error) {
	for _, least := range []int{100, 10} { // the second if there is a low limit
		if fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, least); err == nil {
			return fd, nil
		}
	}
	return unix.Dup(int(f.Fd()))
}

// proceed is the first byte on the pipe: the command may start. Signal numbers follow.
const proceed = 0

// Supervisor is the process that runs the command.
type Supervisor struct {
	cmd     *exec.Cmd
	control *os.File
	before  []int // children that this process already had: a shell that has replaced itself leaves its own
}

// Start starts the supervisor with the given command line: its process must call Main. The command starts with Run. The
// caller must call Close. If apart is set, the supervisor and the command have a mount namespace of their own, in which
// Main may bind files; except for root, that takes a user namespace, in which programs with the set-user-ID bit, such
// as sudo, do not work.
func Start(supervisor, env []string, apart bool) (*Supervisor, error) {
	// If the supervisor is killed, its processes become children of this one, which ends them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of the command's processes: %w", err)
	}
	before := children()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command(supervisor[0], supervisor[1:]...)
	control, err := highDescriptor(read)
	if err != nil {
		write.Close()
		return nil, fmt.Errorf("a descriptor for the supervisor: %w", err)
	}
	defer unix.Close(control)
	cmd.Env = append(slices.Clone(env), controlled+"="+strconv.Itoa(control))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if apart {
		cmd.SysProcAttr = ownMounts()
	}
	if err := cmd.Start(); err != nil {
		write.Close()
		if apart && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL)) {
			err = fmt.Errorf("this system does not let you make a user namespace, which --store needs: run it as root, or without --store (%w)", err)
		}
		return nil, err
	}
	return &Supervisor{cmd, write, before}, nil
}

// ownMounts gives a process a mount namespace of its own.
func ownMounts() *unix.SysProcAttr {
	if os.Geteuid() == 0 {
		return &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	}
	one := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	return &unix.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWNS | unix.CLONE_NEWUSER,
		UidMappings: one(os.Geteuid()), GidMappings: one(os.Getegid()), AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
}

// Close ends what is still running, and waits for it.
func (s *Supervisor) Close() {
	_ = s.control.Close()
	_ = s.cmd.Wait() // fails if Run has already waited
	s.endOrphans()
}

// endOrphans ends what a killed supervisor has left. One that ended by itself has left only processes of other users.
func (s *Supervisor) endOrphans() {
	for until := time.Now().Add(grace); time.Now().Before(until); time.Sleep(look) {
		left := false
		for _, pid := range children() {
			if !slices.Contains(s.before, pid) && unix.Kill(pid, unix.SIGKILL) == nil {
				left = true
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
		if !left {
			return
		}
	}
}

// Run runs the command and returns its exit code, or 128 plus the number of the signal that ended it. Meanwhile it
// passes signals on, except those that the terminal sends, which reach the command anyway. An error means that the
// supervisor did not end by itself.
func (s *Supervisor) Run() (code int, err error) {
	signals := make(chan os.Signal, 16)
	caught := caught()
	if len(caught) > 0 {
		signal.Notify(signals, caught...)
		defer signal.Stop(signals)
	}
	_, _ = s.control.Write([]byte{proceed}) // if the supervisor has ended, Wait returns, too
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if (sig == unix.SIGINT || sig == unix.SIGQUIT) && foreground() {
				continue // sent by the terminal to all processes of the group
			}
			_, _ = s.control.Write([]byte{byte(sig.(syscall.Signal))}) // the supervisor may have ended
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
				return exit.ExitCode(), nil
			}
			if err != nil {
				s.endOrphans()
				return 0, fmt.Errorf("the supervisor of the command: %w", err)
			}
			return 0, nil
		}
	}
}

// caught returns the signals to pass on: all except those that the user wants to be ignored (nohup).
func caught() (all []os.Signal) {
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}

// foreground reports whether the terminal sends its signals to this process and the command.
func foreground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
