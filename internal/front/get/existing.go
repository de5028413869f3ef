package get

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tributary-http/tributary/internal/host/partial"
)

// errExisting is the outcome of a download with Resume whose file is there without a .part: it was completed, or is the
// user's own.
var errExisting = errors.New("the file is there")

// existing reports whether a file is left as it is instead of being resumed.
func (d *download) existing(name string) bool {
	if !d.Resume || d.Force || d.Unique != nil {
		return false
	}
	_, err := os.Lstat(name + partial.Suffix)
	return errors.Is(err, fs.ErrNotExist)
}

// settled makes errExisting a success, if the file has the expected checksum.
func (d *download) settled(err error) error {
	if !errors.Is(err, errExisting) {
		return err
	}
	name := d.result.File
	f, err := os.Open(name)
	if err != nil {
		return fileError(err, name)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileError(err, name)
	}
	if d.Checksum != nil {
		h := d.Checksum.start()
		if _, err := io.Copy(h, &untilDone{d.ctx, f}); err != nil {
			return fileError(err, name)
		}
		if d.result.Checksum, err = d.Checksum.verify(h); err != nil {
			return &Error{Kind: Mismatch, Err: fmt.Errorf("%s exists: %w", name, err), Next: "replace it with --force"}
		}
	}
	d.result.Size, d.result.Already = info.Size(), true
	return nil
}
