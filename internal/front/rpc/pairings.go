package rpc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// maxPairings is how many extensions are remembered; the oldest pairing is removed first.
const maxPairings = 16

// Pairings are the extensions that have their own token, in a file of the user. The file contains only hashes of
// tokens.
type Pairings struct{ Path string }

// Pairing is an extension that may call with its own token.
type Pairing struct {
	Origin string    `json:"origin"`
	Hash   string    `json:"hash"` // SHA-256 of the token, in hexadecimal digits
	Since  time.Time `json:"since"`
}

// All returns the pairings, the oldest first. It returns none if there is no file.
func (p Pairings) All() (all []Pairing, err error) {
	if p.Path == "" {
		return nil, nil
	}
	text, err := statefile.Read(p.Path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the paired extensions: %w", err)
	}
	return all, nil
}

// Has reports whether a token belongs to an extension. A token is valid for one extension only.
func (p Pairings) Has(origin, token string) bool {
	key := p.key(origin)
	return key != "" && subtle.ConstantTimeCompare([]byte(key), []byte(hash(token))) == 1
}

// key returns the hash of an extension's token, or "" if it is not paired. The file is read each time, so that removing
// a pairing takes effect immediately.
func (p Pairings) key(origin string) string {
	if origin == "" {
		return ""
	}
	all, err := p.All()
	if i := slices.IndexFunc(all, func(o Pairing) bool { return o.Origin == origin }); err == nil && i >= 0 {
		return all[i].Hash
	}
	return ""
}

// Add pairs an extension and returns its token. An extension that is already paired gets a new token.
func (p Pairings) Add(ctx context.Context, origin string, now time.Time) (token string, err error) {
	var b [20]byte
	rand.Read(b[:]) // never fails
	token = hex.EncodeToString(b[:])
	return token, p.change(ctx, func(all []Pairing) []Pairing {
		all = append(without(all, origin), Pairing{origin, hash(token), now.UTC().Truncate(time.Second)})
		return all[max(len(all)-maxPairings, 0):]
	})
}

// Remove ends the pairing of an extension, if there is one.
func (p Pairings) Remove(ctx context.Context, origin string) error {
	return p.change(ctx, func(all []Pairing) []Pairing { return without(all, origin) })
}

// change rewrites the file.
func (p Pairings) change(ctx context.Context, to func([]Pairing) []Pairing) error {
	if p.Path == "" {
		return errors.New("no folder to store paired extensions in")
	}
	unlock, err := statefile.Lock(ctx, p.Path)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := p.All()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(to(all), "", "  ")
	if err != nil {
		return err
	}
	return statefile.Replace(p.Path, append(text, '\n'))
}

func without(all []Pairing, origin string) []Pairing {
	return slices.DeleteFunc(slices.Clone(all), func(o Pairing) bool { return o.Origin == origin })
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
