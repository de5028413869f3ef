package partial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// format is the version of a claim's fields.
const format = 1

// maxClaim is the most bytes of a claim that are read, more than the longest URLs need.
const maxClaim = 1 << 20

// Object identifies the version of an object that a partial file belongs to.
type Object struct {
	URL       string `json:"url"`       // that delivered it, without userinfo and fragment
	Place     string `json:"place"`     // where redirects led, without the query
	Validator string `json:"validator"` // strong; "" = the file cannot be resumed
	Mark      string `json:"mark"`      // a digest of the version's other properties
	Size      int64  `json:"size"`      // of the whole object in bytes; -1 = unknown
}

// claim proves that Tributary wrote a partial file. The count is the first line of its file; the second line is JSON.
type claim struct {
	count    `json:"-"`
	Format   int `json:"format"`
	identity     // of the file
	Object
	Synced   int64  `json:"synced"`             // bytes that are certainly on the disk
	AtSync   int64  `json:"at_sync"`            // the file's status.changed that is on the disk with them
	Boot     string `json:"boot"`               // boot in which the bytes after Synced were written
	Closed   bool   `json:"closed,omitempty"`   // the download ended in good order
	Complete bool   `json:"complete,omitempty"` // and the file has all bytes
}

// count is the part of a claim that changes with each write to the file.
type count struct {
	prefix  int64 // bytes from the beginning without a gap
	changed int64 // the file's status.changed
	writing bool  // a write has begun, so the file may have changed since
}

// line returns the count as text. Its length is fixed, and it is written in one piece.
func (c count) line() []byte {
	state := '='
	if c.writing {
		state = '+'
	}
	return fmt.Appendf(nil, "%-19d %-19d %c\n", c.prefix, c.changed, state)
}

// parseCount reads the text of a count.
func parseCount(line []byte) (c count, err error) {
	f := strings.Fields(string(line))
	if len(f) != 3 || f[2] != "=" && f[2] != "+" {
		return c, errors.New("its first line is not a count")
	}
	c.writing = f[2] == "+"
	if c.prefix, err = strconv.ParseInt(f[0], 10, 64); err == nil {
		c.changed, err = strconv.ParseInt(f[1], 10, 64)
	}
	if err == nil && c.prefix < 0 {
		err = errors.New("its count is negative")
	}
	return c, err
}

var (
	errUnknown = errors.New("there is no record that Tributary wrote it")
	errCoarse  = errors.New("its file system tells too little about files to recognize one again")
)

// readClaim reads a claim. touched is the time of its last record, in nanoseconds.
func readClaim(path string) (c claim, touched int64, err error) {
	if err := statefile.Own(path); err != nil {
		return c, 0, err
	}
	st, err := statusOfPath(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, 0, errUnknown
	}
	if err != nil {
		return c, 0, err
	}
	text, err := statefile.Read(path, maxClaim)
	if err != nil {
		return c, 0, err
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	n, err := parseCount(line)
	if err == nil {
		err = json.Unmarshal(rest, &c)
	}
	if err == nil && (c.Format != format || c.Synced < 0 || strings.ContainsAny(c.Validator, "\r\n\x00")) {
		err = errors.New("another version of Tributary wrote it")
	}
	if err != nil {
		return claim{}, 0, fmt.Errorf("read %s: %w", path, err)
	}
	c.count = n
	return c, st.modified, nil
}

// create writes a claim in place of an older one, and leaves its file open. Only its owner may read it, since the URL
// may contain a key.
func (c claim) create(path string) (*os.File, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".claim-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(append(c.line(), text...), '\n'))
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// How much later than its claim a file may have changed: after a kill in the middle of a write, or after a power
// failure.
const (
	killSlack  = time.Second
	powerSlack = 2 * time.Minute
)

// proves returns an error unless the claim is about the file with this status, and no other program has changed the
// file since.
func (c claim) proves(is status, touched int64) error {
	boot := bootID()
	sameBoot := boot != "" && c.Boot == boot
	first, last := c.changed, c.changed // the range in which Tributary's own last change lies
	switch {
	case c.Closed:
	case !sameBoot:
		first, last = c.AtSync, touched+int64(powerSlack)
	case c.writing:
		last = touched + int64(killSlack)
	}
	// and not changed since
	same := c.is(is.identity, sameBoot) || is.made && c.Closed && c.Born != 0 && c.Born == is.Born
	switch {
	case is.coarse():
		return errCoarse
	case !is.regular || !same:
		return errors.New("it is not the file that Tributary wrote")
	case is.changed < first || is.changed > last:
		return errors.New("another program has changed it")
	case is.size < c.trusted():
		return errors.New("it is shorter than it was")
	}
	return nil
}

// trusted returns how many of the first bytes of the file are intact. Bytes written in this boot are in the page cache
// or on the disk; earlier ones may have been lost in a power failure and read as zeros.
func (c claim) trusted() int64 {
	if b := bootID(); b == "" || c.Boot != b {
		return c.Synced
	}
	return c.prefix
}
