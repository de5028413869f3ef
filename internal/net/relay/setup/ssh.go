package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// shell runs commands on a server through the system's ssh, which knows the user's keys, agents, host names and known
// hosts. All commands share one connection, so that a password is asked for once.
type shell struct {
	destination string   // destination argument of ssh(1)
	options     []string // "KEY=VALUE", as in ssh_config(5)
	dir         string   // folder with the socket of the shared connection
}

func openShell(destination string, options []string) (*shell, error) {
	if destination == "" || strings.HasPrefix(destination, "-") {
		return nil, fmt.Errorf("%q is not a destination for ssh: it looks like root@relay.example.com", destination)
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, errors.New("ssh is not installed: apt-get install openssh-client")
	}
	dir, err := os.MkdirTemp("", "tributary-ssh-") // a short path: that of a socket may have at most 107 bytes
	if err != nil {
		return nil, err
	}
	return &shell{destination, options, dir}, nil
}

// close ends the connection.
func (s *shell) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.command(ctx, "-O", "exit").Run() // fails if ssh could not connect
	_ = os.RemoveAll(s.dir)
}

func (s *shell) command(ctx context.Context, flags ...string) *exec.Cmd {
	args := []string{
		"-T", "-o", "ControlMaster=auto", "-o", "ControlPath=" + filepath.Join(s.dir, "c"), "-o",
		"ControlPersist=60",
	}
	for _, o := range s.options {
		args = append(args, "-o", o)
	}
	args = append(append(args, flags...), "--", s.destination)
	cmd := exec.CommandContext(ctx, "ssh", args...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command in the server's shell. The error contains the command's error output.
func (s *shell) run(ctx context.Context, input io.Reader, command string) (output string, err error) {
	cmd := s.command(ctx)
	cmd.Args = append(cmd.Args, command)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &said
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		if text := strings.TrimSpace(said.String()); text != "" {
			return "", fmt.Errorf("%s: %s", s.destination, text)
		}
		return "", fmt.Errorf("%s: %w", s.destination, err)
	}
	return out.String(), nil
}

// script runs a script in sh(1), with arguments that need no quotes.
func (s *shell) script(ctx context.Context, text string, args ...string) (string, error) {
	return s.run(ctx, strings.NewReader(text), strings.Join(append([]string{"sh", "-s", "--"}, args...), " "))
}

// hostName returns the name or address that ssh connects to.
func (s *shell) hostName(ctx context.Context) (string, error) {
	out, err := s.command(ctx, "-G").Output()
	if err != nil {
		return "", fmt.Errorf("ssh -G %s: %w", s.destination, err)
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "hostname "); ok {
			return name, nil
		}
	}
	return "", fmt.Errorf("ssh -G %s names no host", s.destination)
}
