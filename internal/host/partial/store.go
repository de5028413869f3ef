package partial

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// Suffix is the end of the names of partial files. No file that a server names may end in it.
const Suffix = ".part"

// Bounds on the claims of a user.
const (
	maxClaims = 2048
	maxAge    = 180 * 24 * time.Hour
)

// Store is the folder of the claims, in the user's state folder. Without a folder, "", nothing can be resumed.
type Store string

// claimOf returns the path of the claim of a partial file.
func (s Store) claimOf(part string) (string, error) {
	if s == "" {
		return "", errors.New("there is no state folder")
	}
	part, err := filepath.Abs(part)
	if err != nil {
		return "", err
	}
	dir, name := filepath.Split(part)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		part = filepath.Join(real, name)
	}
	sum := sha256.Sum256([]byte(part))
	return filepath.Join(string(s), hex.EncodeToString(sum[:16])), nil
}

// read returns the claim of a partial file.
func (s Store) read(part string) (c claim, touched int64, err error) {
	path, err := s.claimOf(part)
	if err != nil {
		return c, 0, err
	}
	return readClaim(path)
}

// Found is a partial file of Tributary's own.
type Found struct {
	Object
	Have int64 // intact bytes from its beginning

	synced, atSync int64 // of the claim
}

// Find returns what an open partial file contains. An error means that Tributary cannot know.
func (s Store) Find(part *os.File) (Found, error) {
	c, touched, err := s.read(part.Name())
	if err != nil {
		return Found{}, err
	}
	is, err := statusOf(part)
	if err == nil {
		err = c.proves(is, touched)
	}
	if err != nil {
		return Found{}, err
	}
	have := c.trusted()
	if c.Validator == "" || c.Size >= 0 && have > c.Size {
		have = 0
	}
	return Found{c.Object, have, c.Synced, c.AtSync}, nil
}

// Claim records that an open partial file, which this process has locked, is Tributary's own, and what it contains. It
// comes before the first change of the file.
func (s Store) Claim(part *os.File, has Found) (*Recorder, error) {
	path, err := s.claimOf(part.Name())
	if err == nil {
		err = statefile.Own(path)
	}
	if err == nil {
		err = os.MkdirAll(string(s), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("the state folder: %w", err)
	}
	is, err := statusOf(part)
	if err == nil && is.coarse() {
		err = errCoarse
	}
	if err != nil {
		return nil, err
	}
	s.clean()
	c := claim{
		Format:   format,
		identity: is.identity,
		Object:   has.Object,
		Boot:     bootID(),
		Synced:   min(has.synced, has.Have),
		AtSync:   has.atSync,
		count:    count{prefix: has.Have, changed: is.changed, writing: true},
	}
	side, err := c.create(path)
	if err != nil {
		return nil, fmt.Errorf("the state folder: %w", err)
	}
	return newRecorder(s, part, side, path, c), nil
}

// clean removes claims that are old or too many.
func (s Store) clean() {
	entries, err := os.ReadDir(string(s))
	if err != nil {
		return
	}
	type aged struct {
		name string
		used time.Time
	}
	var all []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, aged{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return a.used.Compare(b.used) })
	for i, a := range all {
		if len(all)-i >= maxClaims || time.Since(a.used) > maxAge {
			_ = os.Remove(filepath.Join(string(s), a.name))
		}
	}
}

// URL returns the URL that delivered the partial file of a file so far, "" if that is unknown.
func (s Store) URL(file string) string {
	c, _, err := s.read(file + Suffix)
	if err != nil {
		return ""
	}
	return c.URL
}

// Completed returns the size of a file if it is a complete download of one of these URLs that Tributary itself put
// there.
func (s Store) Completed(file string, urls []string) (size int64, ok bool) {
	c, touched, err := s.read(file + Suffix)
	if err != nil || !c.Complete || !slices.Contains(urls, c.URL) {
		return 0, false
	}
	is, err := statusOfPath(file)
	if err != nil || !is.regular || !c.is(is.identity, c.Boot == bootID()) || is.size != c.prefix {
		return 0, false
	}
	if is.coarse() || is.Born == 0 && is.changed > touched+int64(killSlack) { // the inode alone does not prove it
		return 0, false
	}
	return is.size, true
}

// Discard removes the partial file of a file, if it is Tributary's own and belongs to one of these URLs, and its claim.
func (s Store) Discard(file string, urls []string) error {
	part, err := os.OpenFile(file+Suffix, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer part.Close()
	found, err := s.Find(part)
	if err != nil {
		return err
	}
	if !slices.Contains(urls, found.URL) {
		return fmt.Errorf("%s belongs to another URL", part.Name())
	}
	if err := os.Remove(part.Name()); err != nil {
		return err
	}
	s.Forget(file)
	return nil
}

// Forget removes the claim of a file's partial file.
func (s Store) Forget(file string) {
	if path, err := s.claimOf(file + Suffix); err == nil {
		_ = os.Remove(path)
	}
}
