package privilege

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Drop makes the program run as the account, given by name or number, with its groups and with no capabilities except
// those in keep that the process has. Only root can do that. On success Drop does not return: it starts the program
// again, with the same arguments, in the same process. There it returns nil, because the process belongs to the
// account.
//
// Linux keeps credentials per thread, and a Go program has several threads. Starting again ends them all except the one
// that has the new credentials, so none can be left with root's.
func Drop(account string, keep ...int) error {
	to, err := find(account)
	if err != nil {
		return err
	}
	switch os.Geteuid() {
	case to.uid:
		return nil
	case 0:
	default:
		return fmt.Errorf("become user %s: %w: only root can, so start it as root", account, fs.ErrPermission)
	}
	path, err := exec.LookPath(os.Args[0]) // while root can still look into every folder
	if err != nil {
		return fmt.Errorf("become user %s: find this program: %w", account, err)
	}
	runtime.LockOSThread() // never unlocked: no other goroutine may run with half-changed credentials
	if err := become(to, keep); err != nil {
		return fmt.Errorf("become user %s: %w", account, err)
	}
	return fmt.Errorf("become user %s: start this program again: %w", account,
		syscall.Exec(path, os.Args, to.environ(os.Environ())))
}

// become gives the calling thread the identity. The other threads get it too, but without any capabilities.
func become(to identity, keep []int) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	if err := unix.Setgroups(to.groups); err != nil {
		return fmt.Errorf("set the groups: %w", err)
	}
	if err := unix.Setresgid(to.gid, to.gid, to.gid); err != nil {
		return fmt.Errorf("set the group: %w", err)
	}
	if err := unix.Setresuid(to.uid, to.uid, to.uid); err != nil {
		return fmt.Errorf("set the user: %w", err)
	}
	// Effective capabilities remain until the exec, which may have to pass through a folder that only root may enter.
	var kept []int
	for i := range held {
		held[i].Inheritable = 0
	}
	for _, c := range keep {
		if half, bit := &held[c/32], uint32(1)<<(c%32); half.Permitted&bit != 0 {
			half.Inheritable |= bit
			kept = append(kept, c)
		}
	}
	if err := unix.Capset(&header, &held[0]); err != nil {
		return fmt.Errorf("set the capabilities: %w", err)
	}
	for _, c := range kept { // a program without privileges of its own starts with its ambient capabilities
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0); err != nil {
			return fmt.Errorf("keep capability %d (Linux 4.3 or newer can): %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("rule out new privileges: %w", err)
	}
	return nil
}
