package netlab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
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

// serveTCP serves connections to a port of the origin's address in this process, until the lab's Close, which closes
// them.
func (l *Lab) serveTCP(port int, serve func(net.Conn)) error {
	var listener net.Listener
	err := l.InServer(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(OriginAddr.String(), strconv.Itoa(port)))
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.closers = append(l.closers, func() error { cancel(); return listener.Close() })
	l.services.Go(func() {
		var conns sync.WaitGroup
		for {
			conn, err := listener.Accept()
			if err != nil {
				break // the listener is closed
			}
			conns.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				serve(conn)
			})
		}
		conns.Wait()
	})
	return nil
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
