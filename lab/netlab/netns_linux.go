package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	netnsDir = "/run/netns"
	etcDir   = "/etc/netns" // ip-netns(8): files bound over those in /etc for programs in the namespace
)

// namespace is a named network namespace.
type namespace struct {
	name string
	file *os.File // keeps it alive and lets threads enter
}

// addNamespace makes a namespace; it fails if the name is taken.
func addNamespace(name string) (*namespace, error) {
	if err := command("ip", "netns", "add", name); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(netnsDir, name))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("namespace %s: %w", name, err), command("ip", "netns", "del", name))
	}
	return &namespace{name: name, file: f}, nil
}

// enter runs f on a thread that is in the namespace. Goroutines that f starts are not in it.
func (n *namespace) enter(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("own namespace: %w", err)
	}
	defer home.Close()
	if err := n.control(func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) }); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter namespace %s: %w", n.name, err)
	}
	defer func() {
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		} // else the thread stays locked and dies with the goroutine
	}()
	return f()
}

// control calls f with the namespace's descriptor, which is not closed meanwhile.
func (n *namespace) control(f func(fd int) error) error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var fErr error
	err = raw.Control(func(fd uintptr) { fErr = f(int(fd)) })
	return errors.Join(err, fErr)
}

// remove ends the processes in the namespace and removes it.
func (n *namespace) remove() error {
	n.file.Close()
	return removeNamespace(n.name)
}

func removeNamespace(name string) error {
	killErr := killIn(name)
	return errors.Join(killErr, command("ip", "netns", "del", name), removeEtc(name))
}

// removeEtc removes the files of a namespace, and etcDir once it is empty.
func removeEtc(name string) error {
	err := os.RemoveAll(filepath.Join(etcDir, name))
	_ = os.Remove(etcDir) // fails, as it should, if other namespaces use it
	return err
}

// killIn kills every process in a namespace, by its PID, and waits until they are gone.
func killIn(name string) error {
	self := strconv.Itoa(os.Getpid()) // one of this process's threads may be in the namespace
	deadline := time.Now().Add(5 * time.Second)
	for {
		out, err := exec.Command("ip", "netns", "pids", name).Output()
		if err != nil {
			return fmt.Errorf("ip netns pids %s: %w", name, err)
		}
		pids := slices.DeleteFunc(strings.Fields(string(out)), func(pid string) bool { return pid == self })
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("namespace %s: processes %v do not end", name, pids)
		}
		for _, field := range pids {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var leftover = regexp.MustCompile(`^trib[cs]-(\d+)(-\d+)?$`)

// Sweep removes the namespaces, processes and files that labs of dead processes left behind, and returns the names of
// the namespaces. Only one process sweeps at a time; a second one would fail on names that the first has already
// removed.
func Sweep() ([]string, error) {
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "tributary-lab.lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW,
		0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	var swept []string
	var errs []error
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	for _, e := range entries {
		if m := leftover.FindStringSubmatch(e.Name()); m != nil && dead(m[1]) {
			errs = append(errs, removeNamespace(e.Name()))
			swept = append(swept, e.Name())
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), tempPrefix), "-")
		if dead(pid) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return swept, errors.Join(errs...)
}

func dead(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && unix.Kill(n, 0) == unix.ESRCH
}

// command runs a program and returns its output if it fails.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
