// Package sockstest is a SOCKS5 proxy for tests, written from RFC 1928 and RFC 1929 and independent of the client.
package sockstest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// Options describe how a Server behaves.
type Options struct {
	User, Password string // wanted, if User is not empty
	Reply          byte   // to every request; 0 = success
	Bound          []byte // address type and address in the reply; nil = 0.0.0.0
	Silent         bool   // accept connections and send nothing
	// Dial connects to the requested address. nil = it connects to nothing: after a success the server sends "hello "
	// and echoes all data.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Server is a proxy that serves until the test ends.
type Server struct {
	Options
	ln net.Listener

	mu    sync.Mutex
	asked []string
	conns map[net.Conn]bool
}

// New returns a Server on loopback.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return Serve(t, ln, o)
}

// Serve returns a Server that listens on ln.
func Serve(t testing.TB, ln net.Listener, o Options) *Server {
	s := &Server{Options: o, ln: ln, conns: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.track(c, true)
			serving.Go(func() {
				defer s.track(c, false)
				defer c.Close()
				if err := s.serve(c); err != nil && !ended(err) {
					t.Errorf("SOCKS5 proxy: %v", err)
				}
			})
		}
	})
	return s
}

// ended reports whether an error is the end of a connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed)
}

func (s *Server) track(c net.Conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.conns[c] = true
	} else {
		delete(s.conns, c)
	}
}

// Addr returns the server's "host:port".
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Requests returns the addresses that the server was asked to connect to, each as "name HOST:PORT", "ipv4 HOST:PORT" or
// "ipv6 HOST:PORT".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Open returns how many connections are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Close stops listening and closes all connections.
func (s *Server) Close() {
	s.ln.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// read returns the next n bytes.
func read(c net.Conn, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}

// counted reads a length byte, and returns that many bytes.
func counted(c net.Conn) ([]byte, error) {
	n, err := read(c, 1)
	if err != nil {
		return nil, err
	}
	return read(c, int(n[0]))
}

func (s *Server) serve(c net.Conn) error {
	if s.Silent {
		_, err := io.Copy(io.Discard, c)
		return err
	}
	if welcome, err := s.greet(c); err != nil || !welcome {
		return err
	}
	addr, err := s.request(c)
	if err != nil {
		return err
	}
	reply := s.Reply
	var to net.Conn
	if reply == 0 && s.Dial != nil {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if to, err = s.Dial(ctx, "tcp", addr); err != nil {
			reply = 5
		} else {
			defer to.Close()
		}
	}
	bound := s.Bound
	if bound == nil {
		bound = []byte{1, 0, 0, 0, 0}
	}
	answer := append(append([]byte{5, reply, 0}, bound...), 0, 80)
	if reply == 0 && to == nil {
		answer = append(answer, "hello "...) // in one segment with the reply
	}
	if _, err := c.Write(answer); err != nil || reply != 0 {
		return err
	}
	if to == nil {
		to = c
	}
	return join(c, to)
}

// greet agrees on a method; welcome is false if the client was turned away.
func (s *Server) greet(c net.Conn) (welcome bool, err error) {
	if b, err := read(c, 1); err != nil || b[0] != 5 {
		return false, errors.Join(fmt.Errorf("version %v", b), err)
	}
	methods, err := counted(c)
	if err != nil {
		return false, err
	}
	method := byte(0)
	if s.User != "" {
		method = 2
	}
	if !slices.Contains(methods, method) {
		_, err := c.Write([]byte{5, 0xff})
		return false, err
	}
	if _, err := c.Write([]byte{5, method}); err != nil || method == 0 {
		return true, err
	}
	if b, err := read(c, 1); err != nil || b[0] != 1 {
		return false, errors.Join(fmt.Errorf("version %v of RFC 1929", b), err)
	}
	user, err := counted(c)
	if err != nil {
		return false, err
	}
	password, err := counted(c)
	if err != nil {
		return false, err
	}
	if string(user) != s.User || string(password) != s.Password {
		_, err := c.Write([]byte{1, 1})
		return false, err
	}
	_, err = c.Write([]byte{1, 0})
	return true, err
}

// request returns the address that the client wants to connect to.
func (s *Server) request(c net.Conn) (addr string, err error) {
	head, err := read(c, 4)
	if err != nil {
		return "", err
	}
	if head[0] != 5 || head[1] != 1 || head[2] != 0 {
		return "", fmt.Errorf("request %v", head)
	}
	var kind, host string
	switch head[3] {
	case 1, 4:
		n := 4
		if kind = "ipv4"; head[3] == 4 {
			kind, n = "ipv6", 16
		}
		b, err := read(c, n)
		if err != nil {
			return "", err
		}
		a, _ := netip.AddrFromSlice(b)
		host = a.String()
	case 3:
		b, err := counted(c)
		if err != nil {
			return "", err
		}
		kind, host = "name", string(b)
	default:
		return "", fmt.Errorf("address type %d", head[3])
	}
	port, err := read(c, 2)
	if err != nil {
		return "", err
	}
	addr = net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port))))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, kind+" "+addr)
	return addr, nil
}

// join copies both ways until both directions have ended.
func join(a, b net.Conn) error {
	if a == b {
		_, err := io.Copy(a, a)
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(b, a)
		closeWrite(b)
	}()
	_, err := io.Copy(a, b)
	closeWrite(a)
	<-done
	return err
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
