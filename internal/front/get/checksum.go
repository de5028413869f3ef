package get

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Checksum is the expected checksum of a file.
type Checksum struct {
	name string
	make func() hash.Hash
	want []byte
}

// algorithms are the secure hash functions; older ones can be forged.
var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// ParseChecksum reads "sha256:HEX" or "sha512:HEX".
func ParseChecksum(s string) (*Checksum, error) {
	name, digits, ok := strings.Cut(s, ":")
	name = strings.ToLower(name)
	make := algorithms[name]
	if !ok || make == nil {
		return nil, errors.New("want a checksum like sha256:HEX or sha512:HEX")
	}
	want, err := hex.DecodeString(strings.TrimSpace(digits))
	if size := make().Size(); err != nil || len(want) != size {
		return nil, fmt.Errorf("a %s checksum has %d hexadecimal digits", name, 2*size)
	}
	return &Checksum{name, make, want}, nil
}

// start returns a new hash, nil if c is nil.
func (c *Checksum) start() hash.Hash {
	if c == nil {
		return nil
	}
	return c.make()
}

// verify returns the sum of h, like "sha256:HEX", and an error if it differs from the wanted one; "" and nil if c is
// nil.
func (c *Checksum) verify(h hash.Hash) (string, error) {
	if c == nil {
		return "", nil
	}
	got := h.Sum(nil)
	sum := c.name + ":" + hex.EncodeToString(got)
	if subtle.ConstantTimeCompare(got, c.want) != 1 {
		return sum, fmt.Errorf("the checksum is %s, not %s:%x as it should be", sum, c.name, c.want)
	}
	return sum, nil
}
