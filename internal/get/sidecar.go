package get

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of the files that belong to FILE.
const (
	partSuffix    = ".part"
	sidecarSuffix = partSuffix + ".json"
	newSuffix     = ".new" // of a sidecar that is being written
)

// sidecarFormat is the version of the sidecar's fields. In the previous version, inOrder, a .part has no gaps.
const (
	sidecarFormat = 2
	inOrder       = 1
)

// maxSidecar is the most bytes of a sidecar that are read, more than the longest URLs need.
const maxSidecar = 1 << 20

// sidecar describes the object that a .part belongs to. The first line of the file is Prefix, which is overwritten as bytes arrive;
// the second line is JSON.
type sidecar struct {
	Format    int    `json:"format"`
	URL       string `json:"url"`   // as the user gave it, without userinfo and fragment
	Place     string `json:"place"` // where redirects led, without the query
	Validator string `json:"validator"`
	Mark      string `json:"mark"`   // a digest of the version's other properties
	Size      int64  `json:"size"`   // of the whole object in bytes
	Synced    int64  `json:"synced"` // bytes that are certainly on the disk
	Boot      string `json:"boot"`   // boot in which the bytes after Synced were written
	Prefix    int64  `json:"-"`      // bytes from the beginning without a gap, as written in this boot
}

// prefixLine returns the first line of a sidecar. Its length is fixed, and it is written in one piece.
func prefixLine(n int64) []byte { return fmt.Appendf(nil, "%-19d\n", n) }

// readSidecar reads a sidecar. After any error, the sidecar cannot be trusted.
func readSidecar(name string) (sidecar, error) {
	var s sidecar
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a pipe must not block the open
	if errors.Is(err, unix.ELOOP) {
		return s, fmt.Errorf("%s is a symbolic link", name)
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	if err := ours(f); err != nil {
		return s, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSidecar))
	if err != nil {
		return s, err
	}
	// The previous format has one line.
	if line, rest, ok := bytes.Cut(text, []byte("\n")); ok && len(rest) > 0 {
		if s.Prefix, err = strconv.ParseInt(strings.TrimSpace(string(line)), 10, 64); err != nil {
			return s, fmt.Errorf("read %s: %w", name, err)
		}
		text = rest
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	if s.Format != sidecarFormat && s.Format != inOrder || s.Validator == "" || s.Size < 0 || s.Prefix < 0 || s.Synced < 0 || strings.ContainsAny(s.Validator, "\r\n\x00") {
		return s, errors.New(name + " was not written by this version")
	}
	return s, nil
}

// write replaces the sidecar atomically.
func (s sidecar) write(name string) error {
	f, err := s.create(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// create is like write but leaves the sidecar open. Only its owner may read it, since the URL may contain a key. It is first
// written to a new file, which no other user can have put there; a file that a killed process left is replaced.
func (s sidecar) create(name string) (*os.File, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	fresh := name + newSuffix
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(append(prefixLine(s.Prefix), text...), '\n'))
	err = errors.Join(err, f.Sync())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

// bootID returns the ID of this boot of the machine, "" if there is none.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// trusted returns how many of the first bytes of a .part of this size are intact. Bytes written in this boot are in the page cache
// or on the disk; earlier ones may have been lost in a power failure and read as zeros.
func (s sidecar) trusted(size int64) int64 {
	switch b := bootID(); {
	case size > s.Size:
		return 0
	case b == "" || s.Boot != b:
		return min(size, s.Synced)
	case s.Format == inOrder:
		return size
	}
	return min(size, s.Prefix)
}
