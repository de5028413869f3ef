package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

const (
	maxState  = 1 << 20 // bytes
	tokenLife = 15 * time.Minute
	lockTime  = 5 * time.Second
)

// serverState is the content of the server's state file.
type serverState struct {
	Key     Key                  `json:"key"`
	Clients map[KeyID]time.Time  `json:"clients"` // when each was paired
	Tokens  map[string]time.Time `json:"tokens"`  // when each expires, by hash
	// Limits are the limits of clients, TokenLimits those of future users of a token. A client without an entry has no
	// limits.
	Limits      map[KeyID]Limits  `json:"limits,omitempty"`
	TokenLimits map[string]Limits `json:"token_limits,omitempty"`
}

// pairing is what a client knows about a server.
type pairing struct {
	Server KeyID `json:"server"`
	Key    Key   `json:"key"` // the client's own
	// Installed is the ssh destination of the server, if this client set it up.
	Installed string `json:"installed,omitempty"`
}

// clientState is the content of the client's state file.
type clientState struct {
	Relays map[string]pairing `json:"relays"` // by address
}

// load reads a state file; if there is none, it leaves into unchanged.
func load(path string, into any) error {
	b, err := statefile.Read(path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s cannot be read: it is damaged", path) // the error might quote the file
	}
	return nil
}

// change reads, changes and writes a state file under a lock.
func change[T any](path string, how func(*T) error) (state T, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return state, err
	}
	if err := statefile.Own(path); err != nil {
		return state, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	unlock, err := statefile.Lock(ctx, path)
	if err != nil {
		return state, err
	}
	defer unlock()
	if err := load(path, &state); err != nil {
		return state, err
	}
	if err := how(&state); err != nil {
		return state, err
	}
	b, err := json.Marshal(state)
	if err != nil {
		return state, err
	}
	return state, statefile.Replace(path, b)
}

// ensureKey generates the server's key at its first start.
func (s *serverState) ensureKey() (err error) {
	if s.Key.private == nil {
		s.Key, err = newKey()
	}
	return err
}

// Invite creates an invitation to the server with this state file. It is valid once, for a quarter of an hour. The
// client that uses it gets the limits l.
func Invite(path, address string, l Limits) (Invitation, error) {
	i := Invitation{Address: address, token: make([]byte, tokenSize)}
	rand.Read(i.token)
	s, err := change(path, func(s *serverState) error {
		now := time.Now()
		maps.DeleteFunc(s.Tokens, func(_ string, until time.Time) bool { return now.After(until) })
		if s.Tokens == nil {
			s.Tokens = map[string]time.Time{}
		}
		h := hashToken(i.token)
		s.Tokens[h] = now.Add(tokenLife)
		maps.DeleteFunc(s.TokenLimits, func(h string, _ Limits) bool { return s.Tokens[h].IsZero() })
		if l != (Limits{}) {
			if s.TokenLimits == nil {
				s.TokenLimits = map[string]Limits{}
			}
			s.TokenLimits[h] = l
		}
		return s.ensureKey()
	})
	if err != nil {
		return i, err
	}
	i.Server = s.Key.ID()
	return i, nil
}

var errToken = errors.New("the token is wrong, used or expired")

// enrol uses up a token to pair a client's key.
func enrol(path string, token []byte, client KeyID, now time.Time) error {
	_, err := change(path, func(s *serverState) error {
		h := hashToken(token) // lookup by hash: timing reveals nothing
		until, ok := s.Tokens[h]
		if !ok || now.After(until) {
			return errToken
		}
		delete(s.Tokens, h)
		if s.Clients == nil {
			s.Clients = map[KeyID]time.Time{}
		}
		s.Clients[client] = now
		s.limit(client, s.TokenLimits[h])
		delete(s.TokenLimits, h)
		return nil
	})
	return err
}

// ErrNoClient means that the text matches no paired client, or more than one.
var ErrNoClient = errors.New("not the beginning of one client's key: see  tributary relay clients")

// Clients returns the keys that a server knows, with the time when each was paired.
func Clients(path string) (map[KeyID]time.Time, error) {
	var s serverState
	err := load(path, &s)
	return s.Clients, err
}

// limit sets the limits of a client.
func (s *serverState) limit(k KeyID, l Limits) {
	delete(s.Limits, k)
	if l == (Limits{}) {
		return
	}
	if s.Limits == nil {
		s.Limits = map[KeyID]Limits{}
	}
	s.Limits[k] = l
}

// find returns the client whose key starts with beginning.
func (s *serverState) find(beginning string) (found KeyID, err error) {
	for k := range s.Clients {
		if !strings.HasPrefix(string(k), beginning) {
			continue
		}
		if found != "" {
			return "", ErrNoClient
		}
		found = k
	}
	if found == "" || beginning == "" {
		return "", ErrNoClient
	}
	return found, nil
}

// LimitsOf returns the limits of the clients that have any.
func LimitsOf(path string) (map[KeyID]Limits, error) {
	var s serverState
	err := load(path, &s)
	return s.Limits, err
}

// Limit changes the limits of the client whose key starts with beginning. They apply within removedAfter, also to
// running tunnels.
func Limit(path, beginning string, how func(*Limits)) (k KeyID, l Limits, err error) {
	_, err = change(path, func(s *serverState) error {
		if k, err = s.find(beginning); err != nil {
			return err
		}
		l = s.Limits[k]
		how(&l)
		s.limit(k, l)
		return nil
	})
	return k, l, err
}

// Remove makes a server forget the client whose key starts with beginning. Its sessions end within removedAfter.
func Remove(path, beginning string) (KeyID, error) {
	var found KeyID
	_, err := change(path, func(s *serverState) (err error) {
		if found, err = s.find(beginning); err != nil {
			return err
		}
		delete(s.Clients, found)
		delete(s.Limits, found)
		return nil
	})
	if err != nil {
		return "", err
	}
	forgetUsage(path, found)
	return found, nil
}
