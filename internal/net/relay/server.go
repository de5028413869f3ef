package relay

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	helloTime    = 5 * time.Second // limit for both handshakes
	connectTime  = 10 * time.Second
	maxHalfOpen  = 256
	maxOfAddress = 32 // half-open connections from one address
	maxLanes     = 16 // most lanes of a session
	maxSessions  = 8  // most sessions of a key
	maxAll       = 1024
	forgetAfter  = 60 * time.Second // time after which a session without lanes ends
	serverBudget = 64 << 20         // memory of a session, bytes
	// removedAfter is how soon the sessions of a removed key end.
	removedAfter = 5 * time.Second
	// farewell is how long clients have to acknowledge the end of their last tunnels.
	farewell   = time.Second
	drainCheck = 50 * time.Millisecond
)

// DefaultMemory is how much the streams of all sessions of a server may hold, in bytes.
const DefaultMemory = 256 << 20

// Server connects the streams of clients that it knows. State is the path of the file with its keys, see Invite.
type Server struct {
	State string
	Log   *slog.Logger
	// Memory bounds the data that the streams of all sessions hold, in bytes; 0 = DefaultMemory.
	Memory int64
	// Allow lists networks that clients may reach although they would otherwise be denied.
	Allow []netip.Prefix
	// Drain is how long open tunnels may continue when Serve is told to end; 0 = they end at once.
	Drain time.Duration
	// Reload makes the server read the keys and limits at once, which otherwise happens within seconds; nil = never.
	Reload <-chan os.Signal

	reach   link.Destinations
	epoch   [8]byte
	clients roster
	door    doorway
	memory  memory
	ended   sync.WaitGroup // sessions
	closing atomic.Bool    // no new stream or session may begin
	turned  atomic.Int64   // connections that neither became a lane nor enrolled a client

	mu       sync.Mutex
	sessions map[[idSize]byte]*served
	of       map[KeyID]int
	accounts map[KeyID]*account
}

// memory is the budget shared by the streams of all sessions. It is a [lanes.Budget], safe for concurrent use.
type memory struct {
	limit atomic.Int64
	used  atomic.Int64
}

func (m *memory) Take(n int64) { m.used.Add(n) }
func (m *memory) Left() int64  { return m.limit.Load() - m.used.Load() }

// served is a session at the server.
type served struct {
	*session
	id     [idSize]byte
	key    KeyID
	secret []byte

	// Guarded by the server's lock.
	timer   *time.Timer // ends the session if no lane is added
	alone   time.Time   // when its last lane ended
	joining int         // lanes admitted but not yet added
}

// Serve accepts lanes until ctx ends; then it drains, and all sessions end. It is called once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	st, err := change(s.State, (*serverState).ensureKey)
	if err != nil {
		return err
	}
	s.clients.path = s.State
	s.memory.limit.Store(cmp.Or(s.Memory, DefaultMemory))
	cfg, err := st.Key.config(func(c tls.ConnectionState) error {
		if c.NegotiatedProtocol == enrolProtocol || c.NegotiatedProtocol == laneProtocol && s.clients.knows(peerOf(c)) {
			return nil
		}
		return errors.New("unknown key")
	})
	if err != nil {
		return err
	}
	cfg.NextProtos = []string{laneProtocol, enrolProtocol}
	s.reach.DenyPrivate, s.reach.Allow, s.reach.Local = true, s.Allow, link.Local
	s.mu.Lock() // Status may be called
	s.sessions, s.of, s.accounts = map[[idSize]byte]*served{}, map[KeyID]int{}, map[KeyID]*account{}
	s.mu.Unlock()
	rand.Read(s.epoch[:])

	told := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(told)) // lanes can still be made while the server drains
	var conns sync.WaitGroup
	conns.Go(func() {
		select {
		case <-told.Done():
			s.drain(ctx)
			cancel()
		case <-ctx.Done():
		}
	})
	defer func() {
		cancel()
		conns.Wait()
		for _, v := range s.all() {
			v.end(ErrAway)
		}
		s.ended.Wait()
		for _, a := range s.accounts {
			a.close()
		}
	}()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	conns.Go(func() { s.watch(ctx) })
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ECONNABORTED):
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		case err != nil:
			return err
		}
		leave, ok := s.door.enter(c)
		if !ok {
			s.turned.Add(1)
			c.Close()
			continue
		}
		conns.Go(func() {
			defer leave()
			if err := s.greet(ctx, c, cfg); err != nil {
				c.Close()
				s.turned.Add(1)
				s.Log.Debug("connection refused", "error", err)
			}
		})
	}
}

// watch ends the sessions of keys that were removed, and applies limits that were changed.
func (s *Server) watch(ctx context.Context) {
	every := time.NewTicker(removedAfter)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		case <-s.Reload:
			s.clients.forget()
			s.Log.Info("keys and limits are read again")
		}
		s.expel()
	}
}

// drain waits for the open streams to end, and ends those that remain after s.Drain.
func (s *Server) drain(ctx context.Context) {
	s.closing.Store(true)
	if s.await(ctx, s.Drain, (*session).quiet) {
		return
	}
	for _, v := range s.all() {
		for _, c := range v.conns() {
			c.abort(lanes.CauseDraining)
		}
	}
	s.await(ctx, farewell, func(v *session) bool { return v.quiet() || v.count() == 0 })
}

// await waits until all sessions are done, and reports whether that took at most d.
func (s *Server) await(ctx context.Context, d time.Duration, done func(*session) bool) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	check := time.NewTicker(drainCheck)
	defer check.Stop()
	for {
		if !slices.ContainsFunc(s.all(), func(v *served) bool { return !done(v.session) }) {
			return true
		}
		select {
		case <-check.C:
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Server) expel() {
	for _, v := range s.all() {
		if !s.clients.knows(v.key) {
			s.Log.Info("a session has ended: its key was removed")
			v.end(errRemoved)
		}
	}
	s.mu.Lock()
	accounts := maps.Clone(s.accounts)
	s.mu.Unlock()
	for k, a := range accounts {
		if s.clients.knows(k) {
			a.set(s.clients.limits(k))
			a.retry()
			continue
		}
		s.mu.Lock()
		delete(s.accounts, k)
		s.mu.Unlock()
	}
}

// account returns the account of a key.
func (s *Server) account(k KeyID) *account {
	s.mu.Lock()
	a := s.accounts[k]
	s.mu.Unlock()
	if a != nil {
		return a
	}
	limits := s.clients.limits(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a = s.accounts[k]; a == nil {
		a = newAccount(usageFile(s.State, k), limits, s.Log)
		s.accounts[k] = a
	}
	return a
}

var errRemoved = errors.New("the client's key was removed")

func (s *Server) all() (all []*served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.sessions {
		all = append(all, v)
	}
	return all
}

// greet makes a connection a lane, or enrols its client. After an error the caller closes the connection.
func (s *Server) greet(ctx context.Context, c net.Conn, cfg *tls.Config) error {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	_ = c.SetDeadline(time.Now().Add(helloTime))
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: keepAlive, Interval: keepAlive / 4, Count: 4,
		})
	}
	t := tls.Server(c, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	is := t.ConnectionState()
	if is.NegotiatedProtocol == enrolProtocol {
		token := make([]byte, tokenSize)
		if _, err := io.ReadFull(t, token); err != nil {
			return err
		}
		if err := enrol(s.State, token, peerOf(is), time.Now()); err != nil {
			return err
		}
		s.Log.Info("a client was paired")
		_, err := t.Write([]byte{replyOK})
		return errors.Join(err, t.Close())
	}
	hello := make([]byte, helloSize)
	if _, err := io.ReadFull(t, hello); err != nil {
		return err
	}
	said := hello[:1+idSize+secretSize+4]
	secret := said[1+idSize : 1+idSize+secretSize]
	want, err := proof(is, secret, said)
	if err != nil || !hmac.Equal(want, hello[len(said):]) {
		return errors.Join(errors.New("the lane does not belong to its connection"), err)
	}
	v, status := s.session([idSize]byte(said[1:]), secret, peerOf(is), said[0] == helloNew)
	if v != nil {
		defer s.joined(v)
	}
	if _, err := t.Write(append([]byte{status}, s.epoch[:]...)); err != nil {
		return err
	}
	if v == nil {
		return errors.New("no such session, or too many")
	}
	_ = c.SetDeadline(time.Time{})
	return v.add(binary.BigEndian.Uint32(said[1+idSize+secretSize:]), t, c, new(atomic.Int64))
}

// session returns the session that a lane belongs to, with the status to answer. Until joined is called, the lane
// counts as one of the session's.
func (s *Server) session(id [idSize]byte, secret []byte, key KeyID, fresh bool) (*served, byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.sessions[id]
	switch {
	case v != nil && (v.key != key || subtle.ConstantTimeCompare(v.secret, secret) != 1):
		return nil, replyUnknown
	case v != nil && v.count()+v.joining >= maxLanes:
		return nil, full
	case v != nil:
		v.joining++
		return v, replyOK
	case !fresh:
		return nil, replyUnknown
	case s.closing.Load(), (s.of[key] >= maxSessions || len(s.sessions) >= maxAll) && !s.evict(key):
		return nil, full
	}
	v = &served{id: id, key: key, secret: append([]byte(nil), secret...), joining: 1}
	v.session = newSession(lanes.Config{Budget: holdable(serverBudget), Shared: &s.memory, MaxStreams: maxStreams})
	v.accept = func(c *Conn, to string) { v.parts.Go(func() { s.connect(v.key, c, to) }) }
	v.timer = time.AfterFunc(forgetAfter, func() { s.forget(v) })
	v.gone = func(uint32) {
		s.mu.Lock()
		defer s.mu.Unlock()
		v.alone = time.Now()
		v.timer.Reset(forgetAfter)
	}
	s.sessions[id], s.of[key] = v, s.of[key]+1
	s.ended.Go(func() { // a protocol violation ends the session too
		<-v.done
		defer v.wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		v.timer.Stop()
		s.remove(v)
	})
	return v, replyOK
}

// remove removes a session, which makes room for another one. The caller holds the lock.
func (s *Server) remove(v *served) {
	if s.sessions[v.id] != v {
		return
	}
	delete(s.sessions, v.id)
	if s.of[v.key]--; s.of[v.key] == 0 {
		delete(s.of, v.key)
	}
}

// evict ends the session of a key that has been without a lane for the longest time, and reports whether there was one:
// a client that restarts leaves its last session behind. The caller holds the lock.
func (s *Server) evict(key KeyID) bool {
	var oldest *served
	for _, v := range s.sessions {
		if v.key == key && v.count()+v.joining == 0 && (oldest == nil || v.alone.Before(oldest.alone)) {
			oldest = v
		}
	}
	if oldest == nil {
		return false
	}
	s.remove(oldest)
	oldest.end(ErrAway)
	return true
}

// joined ends the admission of a lane, which was added or failed.
func (s *Server) joined(v *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.joining--
	v.timer.Reset(forgetAfter)
}

// forget ends a session that has no lane.
func (s *Server) forget(v *served) {
	s.mu.Lock()
	lanes := v.count() + v.joining
	s.mu.Unlock()
	if lanes == 0 {
		v.end(ErrAway)
	}
}

// mailPort is the port for outgoing mail, and so for spam.
const mailPort = "25"

// connect connects a stream to its destination and copies until both directions are over.
func (s *Server) connect(key KeyID, c *Conn, to string) {
	a := s.account(key)
	if s.closing.Load() {
		c.abort(a.reject(lanes.CauseDraining))
		return
	}
	if err := a.enter(time.Now()); err != nil {
		c.abort(causeOf(err))
		return
	}
	defer a.leave()
	if to == measureAddr {
		measure(c, a)
		return
	}
	host, port, err := net.SplitHostPort(to)
	if err != nil || port == mailPort || host == "" {
		c.abort(a.reject(lanes.CauseRefused))
		return
	}
	origin, err := s.dial(c, host, to)
	if err != nil {
		cause := causeOf(err)
		if _, gone := c.isOpen(); gone == nil { // otherwise the client gave up
			a.reject(cause)
		}
		c.abort(cause)
		return
	}
	c.connect()
	pipe(c, origin.(*net.TCPConn), a)
}

// dial connects to the destination of a stream, unless its client gives up.
func (s *Server) dial(c *Conn, host, to string) (net.Conn, error) {
	ctx, done := c.unbroken()
	defer done()
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	d := net.Dialer{KeepAlive: keepAlive, ControlContext: func(_ context.Context, _, address string,
		_ syscall.RawConn,
	) error {
		return s.permit(host, address)
	}}
	return d.DialContext(ctx, "tcp", to)
}

// unbroken returns a context that ends with the stream, or with done, which must be called.
func (c *Conn) unbroken() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-c.broken:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}

// permit checks the address that is about to be dialed: a name alone proves nothing.
func (s *Server) permit(host, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		host = ""
	}
	_, err = s.reach.Check(link.Link{}, host, to)
	return err
}

func causeOf(err error) uint64 {
	var dns *net.DNSError
	var reset *ResetError
	switch {
	case errors.As(err, &reset):
		return reset.Cause
	case errors.Is(err, link.ErrDenied), errors.Is(err, link.ErrOffLink):
		return lanes.CauseRefused
	case errors.As(err, &dns):
		return lanes.CauseNotFound
	}
	return lanes.CauseFailed
}

// pipe copies both ways until both are over or one is broken.
func pipe(c *Conn, origin *net.TCPConn, a *account) {
	ctx, done := c.unbroken()
	defer done()
	over := make(chan error, 1)
	go func() {
		_, err := c.WriteTo(metered{ctx, a, origin})
		if err == nil {
			err = origin.CloseWrite()
		}
		if err != nil {
			if reset, ok := errors.AsType[*ResetError](err); ok {
				c.abort(reset.Cause) // no effect unless a limit at this end ended the stream
			}
			_ = origin.SetLinger(0)
			_ = origin.Close()
		}
		over <- err
	}()
	err := c.send(ctx, a, origin)
	if err == nil {
		err = c.CloseWrite()
	}
	if err != nil {
		cause := lanes.CauseClosed
		if reset, ok := errors.AsType[*ResetError](err); ok {
			cause = reset.Cause
		}
		c.abort(cause)
		_ = origin.SetReadDeadline(time.Unix(1, 0))
	}
	<-over
	_ = origin.Close()
	_ = c.Close()
}
