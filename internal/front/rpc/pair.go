package rpc

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"sync"
	"time"
)

// Limits on codes. A code has 100 random bits: whoever knows a proof made with it cannot find it by trying.
const (
	codeTime   = 5 * time.Minute
	codeLetter = 20
)

// codes holds the code that an extension may be paired with. The zero value has none.
type codes struct {
	mu    sync.Mutex
	code  string // "" = none
	until time.Time
}

// fresh returns a new code, which replaces the previous one.
func (c *codes) fresh(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code, c.until = rand.Text()[:codeLetter], now.Add(codeTime)
	return c.code
}

// valid returns the valid code, or "" if there is none.
func (c *codes) valid(now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.After(c.until) {
		c.code = ""
	}
	return c.code
}

// use reports whether a code is the valid one. A code can be used once.
func (c *codes) use(code string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == "" || now.After(c.until) || subtle.ConstantTimeCompare([]byte(code), []byte(c.code)) != 1 {
		return false
	}
	c.code = ""
	return true
}

// NewCode returns a new code for the user, which replaces the previous one: the extension that is given it may be
// paired with it.
func (s *Server) NewCode() (string, error) {
	if s.Owner == nil || s.Pairings.Path == "" {
		return "", errors.New("users cannot be identified here: use the token (tributary rpc token)")
	}
	return s.codes.fresh(time.Now()), nil
}

// prove proves that this server knows the secrets of the calling extension: its result has, for the extension's token
// and for the code, an HMAC of the caller's nonce. An extension that finds none made with its own secret talks to
// another process, which has taken the port, and sends it nothing.
func (m *message) prove(a args) (any, error) {
	var nonce string
	if err := a.get(0, &nonce); err != nil {
		return nil, err
	}
	if len(nonce) < 16 || len(nonce) > 128 {
		return nil, failed("The nonce must have 16 to 128 characters.")
	}
	proofs := []string{}
	if key := m.Pairings.key(m.origin); key != "" {
		proofs = append(proofs, proof(key, nonce))
	}
	if code := m.codes.valid(time.Now()); code != "" && isExtension(m.origin) {
		proofs = append(proofs, proof(hash(code), nonce))
	}
	return proofs, nil
}

// proof returns the proof for the hash of a secret.
func proof(hash, nonce string) string {
	h := hmac.New(sha256.New, []byte(hash))
	h.Write([]byte("tributary.prove " + nonce))
	return hex.EncodeToString(h.Sum(nil))
}

// pair gives an extension that knows the code its own token, and the live page that knows its code, too.
func (m *message) pair(a args) (any, error) {
	var code string
	if err := a.get(0, &code); err != nil {
		return nil, err
	}
	if m.page.is(m.origin) {
		token, err := m.page.pair(code, time.Now())
		return map[string]string{"token": token}, err
	}
	if !isExtension(m.origin) {
		return nil, failed("Only a browser extension can be paired.")
	}
	if !m.codes.use(code, time.Now()) {
		return nil, failed("The code is wrong, or older than five minutes: get a new one with tributary rpc pair.")
	}
	token, err := m.Pairings.Add(m.ctx, m.origin, time.Now())
	if err != nil {
		m.Log.Error("cannot pair an extension", "error", err)
		return nil, failed("The pairing could not be saved; see the log.")
	}
	m.Log.Info("paired an extension", "origin", m.origin)
	return map[string]string{"token": token}, nil
}
