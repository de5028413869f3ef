package get

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tributary-http/tributary/internal/host/partial"
)

// Unique lets a download choose an unused name when there is no user to ask: "big.iso", then "big.1.iso" and so on. A
// .part that this download can resume, with Options.Resume, does not count as used.
type Unique struct {
	// Taken reports whether a path belongs to another download, even if the file does not exist yet. May be nil.
	Taken func(file string) bool
	// Opened is called with the path of the file before the first byte is written. If it returns an error, the download
	// ends with that error. May be nil. The claim of a complete file stays: the caller forgets it.
	Opened func(file string) error
}

// maxNumber is the highest number that a name may get.
const maxNumber = 999

// openUnique makes the output for the first free name.
func (d *download) openUnique(name string) (output, error) {
	for i := 0; ; i++ {
		file := numbered(name, i)
		if d.Unique.Taken != nil && d.Unique.Taken(file) && i < maxNumber {
			continue
		}
		var out output
		_, err := os.Lstat(file)
		if err == nil { // whatever kind of file it is
			err = fileError(fs.ErrExist, file)
		} else {
			out, err = d.openNamed(file)
		}
		if e := (*Error)(nil); errors.As(err, &e) && e.taken && i < maxNumber {
			continue
		}
		if err != nil {
			return nil, err
		}
		p, ok := out.(*part)
		if !ok { // a device appeared there
			out.abandon()
			return nil, fileError(fs.ErrExist, file)
		}
		if err := d.opened(file); err != nil {
			p.abandon()
			return nil, err
		}
		p.instead = func() (string, error) {
			for i++; i <= maxNumber; i++ {
				file := numbered(name, i)
				_, err := os.Lstat(file)
				_, perr := os.Lstat(file + partial.Suffix)
				if errors.Is(err, fs.ErrNotExist) && errors.Is(perr, fs.ErrNotExist) {
					d.named(file)
					return file, d.opened(file)
				}
			}
			return name, errors.New("too many files have this name")
		}
		return p, nil
	}
}

// opened reports the name of the file that a .part will become.
func (d *download) opened(file string) error {
	if d.Unique.Opened == nil {
		return nil
	}
	if err := d.Unique.Opened(file); err != nil {
		return fileError(err, file)
	}
	return nil
}

// numbered returns the path with a number before its extension: "big.1.iso". Number 0 is the path itself.
func numbered(file string, n int) string {
	if n == 0 {
		return file
	}
	dir, name := filepath.Split(file)
	ext := filepath.Ext(name)
	if len(ext) > 16 {
		ext = ""
	}
	number := fmt.Sprintf(".%d", n)
	if room := maxName - len(number); len(name) > room {
		name = shortenTo(name, room)
	}
	return dir + strings.TrimSuffix(name, ext) + number + ext
}
