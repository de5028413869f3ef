package use

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const maxFile = 8 << 20 // maximum size of a settings file in bytes

// place is the location of a file after following all links.
type place struct {
	path string
	info unix.Stat_t // zero if there is no file
	is   bool
}

// find follows the links to a file. Each link and each folder on the way must belong to this user or root, and the file
// itself to this user: otherwise others could have their own files changed, or put theirs in its place.
func find(path string, uid int) (place, error) {
	if !filepath.IsAbs(path) {
		return place{}, fmt.Errorf("%s is not an absolute path", path)
	}
	at, rest := "/", strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		var is unix.Stat_t
		err := unix.Lstat(next, &is)
		if errors.Is(err, unix.ENOENT) {
			return place{path: filepath.Join(append([]string{next}, rest[1:]...)...)}, nil
		}
		if err != nil {
			return place{}, &fs.PathError{Op: "lstat", Path: next, Err: err}
		}
		mine := int(is.Uid) == uid
		switch is.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			if !mine && is.Uid != 0 {
				return place{}, fmt.Errorf("%s is a link of user %d: %w", next, is.Uid, fs.ErrPermission)
			}
			to, err := os.Readlink(next)
			if err != nil {
				return place{}, err
			}
			if links++; links > 40 {
				return place{}, &fs.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
			}
			if filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), rest[1:]...)
			if len(rest) > 0 && rest[0] == "" {
				rest = rest[1:]
			}
			continue
		case unix.S_IFDIR:
			if !mine && is.Uid != 0 || is.Mode&0o002 != 0 && is.Mode&unix.S_ISVTX == 0 {
				return place{}, fmt.Errorf("users other than you and root may write to %s: %w", next, fs.ErrPermission)
			}
			if len(rest) == 1 {
				return place{}, fmt.Errorf("%s is a folder", next)
			}
		case unix.S_IFREG:
			switch {
			case len(rest) > 1:
				return place{}, fmt.Errorf("%s is not a folder", next)
			case !mine:
				return place{}, fmt.Errorf("%s belongs to user %d: run this as that user: %w", next, is.Uid,
					fs.ErrPermission)
			case is.Mode&0o002 != 0:
				return place{}, fmt.Errorf("every user may write to %s: %w", next, fs.ErrPermission)
			case is.Nlink > 1:
				return place{}, fmt.Errorf("%s has another name (a hard link), which would keep the old content", next)
			}
			return place{path: next, info: is, is: true}, nil
		default:
			return place{}, fmt.Errorf("%s is not a regular file", next)
		}
		at, rest = next, rest[1:]
	}
	return place{}, fmt.Errorf("%s is a folder", path)
}

// read returns the content of a file, and whether the file exists.
func read(path string, uid int) (text string, exists bool, err error) {
	p, err := find(path, uid)
	if err != nil || !p.is {
		return "", false, err
	}
	f, err := os.OpenFile(p.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is too large for a settings file", path)
	}
	return string(b), true, err
}

// replace replaces the whole content of a file, or creates it, unless it has changed meanwhile. It returns the folders
// that it created.
func replace(path, was, text string, existed bool, uid int) (folders []string, err error) {
	p, err := find(path, uid)
	if err != nil {
		return nil, err
	}
	if p.is != existed {
		return nil, fmt.Errorf("%s was created or deleted in the meantime: try again", path)
	}
	dir := filepath.Dir(p.path)
	if folders, err = makeFolders(dir); err != nil {
		return folders, err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(p.path)+"-")
	if err != nil {
		return folders, err
	}
	mode := fs.FileMode(0o644)
	if p.is {
		mode = fs.FileMode(p.info.Mode & 0o777)
		_ = f.Chown(int(p.info.Uid), int(p.info.Gid)) // this user may not be allowed to set the group
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		if now, exists, readErr := read(path, uid); readErr != nil || exists != existed || now != was {
			err = fmt.Errorf("%s was changed in the meantime: try again", path)
		} else if existed {
			err = os.Rename(f.Name(), p.path)
		} else if err = os.Link(f.Name(), p.path); err == nil { // never replaces a file that has appeared meanwhile
			err = os.Remove(f.Name())
		}
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return folders, err
}

// makeFolders creates a folder and its missing parents, and returns the created folders, the outermost first.
func makeFolders(dir string) (made []string, err error) {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append([]string{at}, missing...)
	}
	for _, at := range missing {
		if err := os.Mkdir(at, 0o755); err != nil {
			return made, err
		}
		made = append(made, at)
	}
	return made, nil
}

// remove removes a file that was created, and the empty folders among those created for it.
func remove(path, was string, folders []string, uid int) error {
	p, err := find(path, uid)
	if err != nil {
		return err
	}
	if p.is {
		if now, _, err := read(path, uid); err != nil || now != was {
			return errors.Join(err, fmt.Errorf("%s was changed in the meantime: try again", path))
		}
		if err := os.Remove(p.path); err != nil {
			return err
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		_ = os.Remove(folders[i]) // fails if a folder is not empty
	}
	return nil
}
