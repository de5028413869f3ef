package rpc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// ownPage is the live page at the address of ListenPage. It is paired as extensions are, but with a code of its own,
// and until this process ends or another window is paired.
type ownPage struct {
	codes  codes
	origin string // "http://127.1.2.3:45678"; "" = there is no such page

	mu   sync.Mutex
	hash string // of its token; "" = it is not paired
}

// ListenPage listens on an address of this machine that is drawn at random. While no proxy runs, another user can serve
// pages at any fixed address, and leave a service worker in the user's browser that later gets what is meant for the
// proxy's own page. Nobody can do this for an address that is not known before, and nothing that a page at this address
// knows is valid later.
func ListenPage() (net.Listener, error) {
	var b [3]byte
	rand.Read(b[:]) // never fails
	// 127.0.0.0/16 has addresses of other programs, and 127.255.255.255 is for broadcasts.
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 1+b[0]%254, b[1], 1+b[2]%254)})
}

// Page returns the server for a listener of ListenPage, on which the live page may call the methods once it is paired.
// The Server must not serve yet.
func (s *Server) Page(l net.Listener, live http.Handler) *http.Server {
	s.page.origin = "http://" + l.Addr().String()
	mux := http.NewServeMux()
	mux.Handle(path, s)
	mux.Handle("/", live)
	return s.guarded(mux)
}

// PageLink returns the address of the live page with a new code, which replaces the previous one.
func (s *Server) PageLink() (string, error) {
	switch {
	case s.Owner == nil:
		return "", errors.New("users cannot be identified here, so the live page cannot be given control")
	case s.page.origin == "":
		return "", errors.New(`there is no live page: set admin = "127.0.0.1:9091" in the configuration and restart the proxy`)
	}
	return s.page.origin + "/#" + s.page.codes.fresh(time.Now()), nil
}

// is reports whether an origin is that of the page.
func (p *ownPage) is(origin string) bool { return origin != "" && origin == p.origin }

// pair returns the page's token, which replaces the previous one.
func (p *ownPage) pair(code string, now time.Time) (token string, err error) {
	if !p.codes.use(code, now) {
		return "", failed("The code was used, or is older than five minutes: run tributary rpc page again.")
	}
	var b [20]byte
	rand.Read(b[:]) // never fails
	token = hex.EncodeToString(b[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hash = hash(token)
	return token, nil
}

// has reports whether a token is the page's.
func (p *ownPage) has(origin, token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.is(origin) && p.hash != "" && subtle.ConstantTimeCompare([]byte(p.hash), []byte(hash(token))) == 1
}
