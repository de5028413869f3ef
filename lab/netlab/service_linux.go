package netlab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// service is a program of a lab that serves in the server namespace until Stop or the lab's Close.
type service struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been waited for
}

// startService starts a program in the server namespace and waits until it listens at the origin's port.
func (l *Lab) startService(ctx context.Context, argv []string, port int) (*service, error) {
	s := &service{cmd: l.Server(context.Background(), argv[0], argv[1:]...), done: make(chan struct{})}
	var said bytes.Buffer
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	l.services.Go(func() {
		_ = s.cmd.Wait() // it is killed, so its exit status means nothing
		close(s.done)
	})
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	go func() { // do not wait for a program that gives up at once
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := l.server.waitFor(ctx, fmt.Sprintf("%s:%d", OriginAddr, port)); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return s, nil
}

// Stop ends the program at once; its connections are reset or closed by the kernel.
func (s *service) Stop() {
	select {
	case <-s.done:
	default:
		_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL)
		<-s.done
	}
}
