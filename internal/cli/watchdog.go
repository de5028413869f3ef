package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/host/redirect"
)

// report is the only message that the background process sends to its parent.
type report struct {
	Text  string
	Error string
	Code  int
}

// codedError is an error with its own exit code, such as the error of a child process.
type codedError struct {
	error
	code int
}

// keepInBackground starts this command again as a background process, and returns when the rules are in force.
func (a *app) keepInBackground(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := exec.Command(self, append(slices.Clone(a.args), "--foreground", "--report=3")...)
	cmd.ExtraFiles = []*os.File{write}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { read.Close() })
	defer stop()
	var r report
	if err := json.NewDecoder(read).Decode(&r); err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return errors.Join(errors.New("the background process that keeps the rules did not respond"), cmd.Wait())
	}
	if r.Error != "" {
		_ = cmd.Wait() // the error was reported
		return codedError{errors.New(r.Error), r.Code}
	}
	fmt.Fprintln(a.stdout, r.Text)
	return cmd.Process.Release()
}

// keep puts the rules in force, reports that with say, updates them as the proxy's links come and go, and removes them
// when the proxy or ctx ends. It keeps the port that the rules lead to open all the time, so that no other process can
// take it.
func (a *app) keep(ctx context.Context, f redirectFlags, rules redirect.Rules, say func(string)) error {
	client, _, err := a.reach(ctx, f.file, f.socket)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Release(ctx); err != nil { // ends any process that keeps rules now
		return err
	}
	listeners, err := redirect.Listen()
	if err != nil {
		return fmt.Errorf("open a port for redirected connections: %w", err)
	}
	defer listeners.Close()
	lease, err := client.Redirect(ctx, listeners.Files...)
	if err != nil {
		return err
	}
	defer lease.Close()
	rules.To, rules.NoIPv6 = listeners.Port, !listeners.IPv6()
	now := lease.Next()
	warn, err := complete(&rules, now)
	if err != nil {
		return usageError{err}
	}
	words := make(chan control.Redirect)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx or the lease
		for {
			r := lease.Next()
			select {
			case words <- r:
			case <-ctx.Done():
				return
			}
			if r.Over {
				return
			}
		}
	}()
	for first := true; !now.Over; first = false {
		rules.Over, rules.Around = now.Links, now.Around
		change, done := context.WithTimeout(ctx, firewallTime)
		in, err := redirect.On(change, rules)
		done()
		if err != nil {
			return errors.Join(err, turnOff(rules.To))
		}
		if first {
			say(describe(in, rules) + warn)
		}
		select {
		case now = <-words:
		case <-ctx.Done():
			now.Over = true
		}
	}
	return turnOff(rules.To)
}

// complete adds to the rules what the proxy reports about itself.
func complete(r *redirect.Rules, p control.Redirect) (warn string, err error) {
	wanted := slices.ContainsFunc(r.Users, func(u redirect.Users) bool { return u.First == u.Last && u.Has(p.UID) })
	switch {
	case wanted && !p.Marked:
		return "", fmt.Errorf("the proxy runs as user %d and cannot mark its connections, so they would be redirected to itself. "+
			"Remove that user from --user, or give the proxy CAP_NET_ADMIN", p.UID)
	case !wanted:
		r.Except = append(r.Except, redirect.Users{First: p.UID, Last: p.UID})
		warn = fmt.Sprintf("\nuser %d is exempt because the proxy runs as that user", p.UID)
	}
	if r.NoIPv6 {
		warn += "\nIPv4 only: this machine has no IPv6 loopback address to redirect to"
	}
	return warn, nil
}

// turnOff removes the rules, unless they lead to another port by now. It does not depend on other contexts, since it
// runs while they end.
func turnOff(port uint16) error {
	ctx, cancel := context.WithTimeout(context.Background(), firewallTime)
	defer cancel()
	if in, err := redirect.Find(ctx); err == nil && in.By != "" && in.To != port {
		return nil
	}
	return redirect.Off(ctx)
}
