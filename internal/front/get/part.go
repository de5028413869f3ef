package get

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/host/partial"
)

// part is the output that becomes a regular file. Its methods belong to one goroutine.
type part struct {
	ctx      context.Context
	name     string                 // of the complete file
	force    bool                   // may replace it
	instead  func() (string, error) // returns another name if a file appeared there; nil = none
	f        *os.File
	url      string         // that the user gave
	object   partial.Object // that f belongs to; no validator = cannot be resumed
	size     int64          // bytes in f from its beginning without a gap
	checksum *Checksum
	sum      hash.Hash // of the first hashed bytes; nil if no checksum was requested
	hashed   int64
	buffer   []byte // for data read back to be hashed
	done     bool
	modified time.Time // what the complete file's time becomes; zero = it stays

	store     partial.Store
	claim     *partial.Recorder // records size while bytes arrive; nil = the claim could not be written
	unclaimed error             // why
}

// open makes the output for a name from the user or from SafeName. Every failure that can be detected before the first
// byte happens here.
func (d *download) open(name string) (output, error) {
	if d.Dir != "" && !filepath.IsAbs(name) {
		if err := os.MkdirAll(d.Dir, 0o777); err != nil {
			return nil, fileError(err, d.Dir)
		}
		name = filepath.Join(d.Dir, name)
	}
	if d.Unique != nil {
		return d.openUnique(name)
	}
	return d.openNamed(name)
}

// openNamed makes the output for a path.
func (d *download) openNamed(name string) (output, error) {
	d.named(name)
	old, err := os.Stat(name)
	switch {
	case err == nil && old.IsDir():
		return nil, &Error{
			Kind: File, Err: fmt.Errorf("%s is a folder", name), Next: "name a file with -o, or the folder with -d",
			taken: true,
		}
	case err == nil && !old.Mode().IsRegular() && d.Output == "": // another user may have put it there to get the bytes
		return nil, fileError(fmt.Errorf("%s %w", name, errNotRegular), name)
	case err == nil && !old.Mode().IsRegular(): // a device or a pipe gets the bytes as a stream
		f, err := openSpecial(name)
		if err != nil {
			return nil, fileError(err, name)
		}
		out := newStream(f, d.Checksum)
		out.close = f
		return out, nil
	}
	if info, err := os.Lstat(name); err == nil && !d.Force {
		if info.Mode().IsRegular() && d.existing(name) {
			return nil, errExisting
		}
		return nil, &Error{
			Kind: File, Err: fmt.Errorf("%s exists", name),
			Next:  "choose another name with -o, or replace it with --force",
			taken: true,
		}
	}
	p := &part{
		ctx:      d.ctx,
		name:     name,
		force:    d.Force,
		checksum: d.Checksum,
		sum:      d.Checksum.start(),
		store:    d.Partial,
		url:      d.asked.url.String(),
	}
	if err := p.openFile(d.Resume); err != nil {
		return nil, err
	}
	if p.size == 0 {
		return p, nil
	}
	if err := p.trust(d); err != nil {
		p.unclaim()
		p.f.Close()
		return nil, err
	}
	return p, nil
}

// openFile opens and locks the .part: a new one, unless resume or force allows an existing one.
func (p *part) openFile(resume bool) error {
	name := p.name + partial.Suffix
	f, err := createPart(name)
	if errors.Is(err, fs.ErrExist) && !resume && !p.force {
		return &Error{
			Kind: File, Err: fmt.Errorf("%s exists from an earlier download", name),
			Next: "resume it with --resume, or start again with --force",
		}
	}
	if errors.Is(err, fs.ErrExist) {
		f, err = p.openOld(name, resume)
	}
	if err != nil {
		return fileError(err, name)
	}
	p.f = f
	return nil
}

// createPart makes a .part and locks it. Other users may not write to it, whatever the umask; see openTo.
func createPart(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return f, lock(f)
}

// openOld opens and locks an existing .part. The .part is resumed, or with force replaced by a new one, so that a
// process that has it open, or another name of it, cannot affect the new download. A .part of another user is left
// alone.
func (p *part) openOld(name string, resume bool) (*os.File, error) {
	old, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a pipe must not block the open
	if errors.Is(err, fs.ErrPermission) {
		if info, serr := os.Lstat(name); serr == nil {
			err = errors.Join(owned(info, name, os.Geteuid()), err)
		}
	}
	if err != nil {
		return nil, err
	}
	refused := ours(old)
	switch {
	case errors.As(refused, new(*strangerError)), errors.Is(refused, errNotRegular):
		old.Close()
		return nil, refused
	case refused != nil && !p.force:
		old.Close()
		return nil, &Error{Kind: File, Err: refused, Next: "start again with --force", taken: true}
	}
	if err := lock(old); err != nil {
		return nil, err
	}
	if !resume || refused != nil {
		defer old.Close() // once the new one is locked
		if err := os.Remove(name); err != nil {
			return nil, err
		}
		return createPart(name)
	}
	info, err := old.Stat() // locked, so it no longer changes
	if err != nil {
		old.Close()
		return nil, err
	}
	p.size = info.Size()
	return old, nil
}

// lock keeps other downloads away from a .part. If it fails, it closes the file.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		err = nil // a file system without locks
	}
	// While it was being opened, the download that held the lock may have renamed it to FILE.
	if err == nil && !stillNamed(f) {
		err = unix.EWOULDBLOCK
	}
	if err == nil {
		return nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &Error{
			Kind: File, Err: fmt.Errorf("another download is writing %s", f.Name()),
			Next: "wait for it, or choose another name with -o", taken: true,
		}
	}
	return err
}

// stillNamed reports whether a file's name still leads to that file.
func stillNamed(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(opened, there)
}

// trust decides how much of a .part can be resumed.
func (p *part) trust(d *download) error {
	found, err := p.store.Find(p.f)
	switch {
	case err != nil && d.Force:
		d.note(fmt.Sprintf("the URL that %s belongs to is unknown; starting again", p.f.Name()))
		return p.begin(version{size: -1})
	case err != nil:
		return &Error{
			Kind: File, Err: fmt.Errorf("the URL that %s belongs to is not known: %w", p.f.Name(), err),
			Next: "start again with --force, or choose another name with -o", taken: true,
		}
	// a validator distinguishes versions of one URL (R91)
	case found.URL != p.url && !slices.Contains(d.Mirrors, found.URL) && d.Checksum == nil:
		return &Error{
			Kind: File, Err: fmt.Errorf("%s belongs to another URL", p.f.Name()),
			Next: "start again with --force, or verify with --checksum that both URLs have the same file", taken: true,
		}
	}
	if found.Have == found.Size && d.Checksum == nil {
		found.Have-- // complete: the last byte is requested again, to check that the object is still this version
	}
	if found.Have <= 0 {
		d.note(fmt.Sprintf("it is not certain that any of %s can be used; starting again", p.f.Name()))
		return p.begin(version{size: -1})
	}
	p.object, p.size = found.Object, found.Have
	p.watch(found)
	if err := p.f.Truncate(p.size); err != nil {
		return fileError(err, p.f.Name())
	}
	p.claim.Advance(p.size)
	return p.hash(p.size)
}

// have implements output.
func (p *part) have() (int64, *version) {
	if p.object.Validator == "" {
		return p.size, nil
	}
	return p.size, &version{p.object.Validator, p.object.Size, p.object.Place, p.object.Mark}
}

// begin implements output.
func (p *part) begin(v version) error {
	p.unclaim()
	if v.size < 0 {
		v.validator = ""
	}
	p.size, p.hashed, p.sum = 0, 0, p.checksum.start()
	p.object = partial.Object{
		URL:       p.url,
		Place:     v.place,
		Validator: v.validator,
		Mark:      v.mark,
		Size:      v.size,
	}
	p.watch(partial.Found{Object: p.object})
	if err := p.f.Truncate(0); err != nil {
		return fileError(err, p.f.Name())
	}
	p.claim.Advance(0)
	return nil
}

// Write implements io.Writer.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.WriteAt(b, p.size)
	return n, errors.Join(err, p.advance(p.size+int64(n)))
}

// WriteAt implements placed.
func (p *part) WriteAt(b []byte, off int64) (int, error) {
	p.claim.Writing()
	n, err := p.f.WriteAt(b, off)
	if p.sum != nil && off == p.hashed {
		p.sum.Write(b[:n])
		p.hashed += int64(n)
	}
	if err != nil {
		return n, fileError(err, p.f.Name())
	}
	return n, nil
}

// hashStep is how many bytes are read back and hashed between two writes: enough to catch up when a gap closes, but so
// little that the links do not wait for it.
const hashStep = 1 << 20

// advance implements placed.
func (p *part) advance(size int64) error {
	p.size = size
	p.claim.Advance(size)
	return p.hash(hashStep)
}

// hash reads back and hashes up to most bytes that were not hashed when written, because earlier bytes were missing.
func (p *part) hash(most int64) error {
	for p.sum != nil && p.hashed < p.size && most > 0 {
		if err := p.ctx.Err(); err != nil {
			return fileError(err, p.f.Name())
		}
		if p.buffer == nil {
			p.buffer = make([]byte, 256<<10)
		}
		b := p.buffer[:min(int64(len(p.buffer)), p.size-p.hashed)]
		if _, err := p.f.ReadAt(b, p.hashed); err != nil {
			return fileError(err, p.f.Name())
		}
		p.sum.Write(b)
		p.hashed, most = p.hashed+int64(len(b)), most-int64(len(b))
	}
	return nil
}

// watch claims the .part, before it changes, and keeps the claim up to date from now on. Without a claim, the download
// works but cannot be resumed.
func (p *part) watch(has partial.Found) {
	p.claim, p.unclaimed = p.store.Claim(p.f, has)
}

// unclaim ends the updates of the claim, and leaves it as it is.
func (p *part) unclaim() {
	_ = p.claim.Stop()
	p.claim.Close()
	p.claim = nil
}

// sync writes everything to the disk. A failed sync is final: Linux reports the error only once.
func (p *part) sync() error {
	if err := errors.Join(p.claim.Stop(), p.f.Sync()); err != nil {
		return fileError(err, p.f.Name())
	}
	return nil
}

// complete implements output.
func (p *part) complete() (sum string, err error) {
	if err := p.sync(); err != nil {
		return "", err
	}
	if err := p.hash(p.size); err != nil {
		return "", err
	}
	if sum, err = p.checksum.verify(p.sum); err != nil {
		p.done = true
		p.claim.Remove() // without a claim, the .part cannot be resumed
		p.f.Close()
		return sum, &Error{
			Kind: Mismatch, Err: err,
			Next: "check the source of the checksum, and download the file again with --force",
			Kept: "the received file was kept as " + p.f.Name() + " for inspection",
		}
	}
	if !stillNamed(p.f) {
		p.done = true
		p.claim.Remove()
		p.f.Close()
		return sum, &Error{
			Kind: File, Err: fmt.Errorf("%s was replaced by another file during the download", p.f.Name()),
			Next: "choose a folder that only you can write to, with -d or -o",
		}
	}
	move := renameNew
	if p.force {
		move = os.Rename
	}
	for {
		if p.instead != nil { // the claim stays, to prove the completion
			p.claim.Complete(p.name, p.size)
		}
		err = move(p.f.Name(), p.name)
		if !errors.Is(err, fs.ErrExist) || p.instead == nil {
			break
		}
		if p.name, err = p.instead(); err != nil {
			break
		}
	}
	if err != nil {
		return sum, fileError(err, p.name)
	}
	p.done = true
	p.date()
	openTo(p.f, umask())
	if p.instead == nil {
		p.claim.Remove()
	} else {
		p.claim.Close()
	}
	if err := p.f.Close(); err != nil {
		return sum, fileError(err, p.name)
	}
	return sum, syncDir(filepath.Dir(p.name))
}

// room fails if the disk has less space than the rest of a file of this size takes: it would be full in the middle of
// the download. size is -1 if unknown.
func (p *part) room(size int64) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(p.f.Fd()), &fs); err != nil || fs.Blocks == 0 { // some network file systems do not tell
		return nil
	}
	free := int64(min(uint64(fs.Bavail)*uint64(fs.Bsize), math.MaxInt64))
	var has unix.Stat_t
	if err := unix.Fstat(int(p.f.Fd()), &has); err == nil {
		free += has.Blocks * 512 // of the .part, which may have bytes beyond those that are kept
	}
	if size <= free {
		return nil
	}
	return fileError(fmt.Errorf("%w: the file takes %.1f MB, and %.1f MB are free", syscall.ENOSPC, float64(size)/1e6,
		float64(free)/1e6), p.name)
}

// date gives the complete file the time at which its content was modified. One in the future would be wrong.
func (p *part) date() {
	if at := p.modified; !at.IsZero() && at.Before(time.Now()) {
		t := unix.NsecToTimeval(at.Unix() * 1e9)
		_ = unix.Futimes(int(p.f.Fd()), []unix.Timeval{t, t})
	}
}

// abandon implements output.
func (p *part) abandon() string {
	if p.done {
		return ""
	}
	p.done = true
	failed := p.claim.Stop()
	if p.size == 0 || p.object.Validator == "" || p.claim == nil {
		// Remove both while locked: the next download must not find only one of them.
		p.claim.Remove()
		if stillNamed(p.f) {
			_ = os.Remove(p.f.Name())
		}
		p.f.Close()
		switch {
		case p.size == 0:
			return ""
		case p.object.Validator == "":
			return "nothing was kept: the server does not send a strong validator, which resuming needs"
		}
		return fmt.Sprintf("nothing was kept, since it could not be resumed (%v)", p.unclaimed)
	}
	p.claim.Writing()
	_ = p.f.Truncate(p.size) // the claim counts the bytes without a gap
	p.claim.Keep(p.size, failed == nil && p.f.Sync() == nil)
	p.f.Close()
	return fmt.Sprintf("%d of %d bytes are kept in %s: to continue, run the same command with --resume", p.size,
		p.object.Size, p.f.Name())
}

// syncDir makes a rename in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil { // a folder may be writable but not readable
		return nil
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // some file systems do not support it
		return fileError(err, dir)
	}
	return nil
}
