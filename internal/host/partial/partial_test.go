package partial

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rig is a folder with a.part, whose first 6 bytes Tributary wrote, and its claim.
type rig struct {
	*testing.T
	dir  string
	part string
	Store
}

var object = Object{URL: "https://h/a", Place: "https://h:443/a", Validator: `"v"`, Mark: "m", Size: 9}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t, dir, filepath.Join(dir, "a.part"), Store(filepath.Join(dir, "state", "partial"))}
	r.download(true)
	return r
}

// download writes 6 bytes of a.part, and ends in good order or as if the process were killed.
func (r *rig) download(keep bool) {
	r.Helper()
	_ = os.Remove(r.part)
	f, err := os.OpenFile(r.part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	c, err := r.Claim(f, Found{Object: object})
	if err != nil {
		r.Fatal(err)
	}
	c.Writing()
	if _, err := f.WriteString("honest"); err != nil {
		r.Fatal(err)
	}
	c.Advance(6)
	if err := c.Stop(); err != nil {
		r.Fatal(err)
	}
	if keep {
		c.Keep(6, true)
	} else {
		c.Close()
	}
	r.tick(r.part)
}

// tick returns when the file system gives changes a later time than it gave this file.
func (r *rig) tick(path string) {
	r.Helper()
	was, err := os.Stat(path)
	r.must(err)
	for now := was; !now.ModTime().After(was.ModTime()); {
		r.must(os.WriteFile(path+".tick", nil, 0o600))
		now, err = os.Stat(path + ".tick")
		r.must(err)
	}
	r.must(os.Remove(path + ".tick"))
}

// find opens a partial file and asks what it contains.
func (r *rig) find(name string) (Found, error) {
	r.Helper()
	f, err := os.Open(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	return r.Find(f)
}

// must fails the test if one of several steps failed.
func (r *rig) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// claim is the path of the claim of a.part.
func (r *rig) claim() string {
	r.Helper()
	path, err := r.claimOf(r.part)
	r.must(err)
	return path
}

// edit replaces text in the claim.
func (r *rig) edit(old, text string) {
	r.Helper()
	b, err := os.ReadFile(r.claim())
	r.must(err)
	if !strings.Contains(string(b), old) {
		r.Fatalf("no %q in %s", old, b)
	}
	r.must(os.WriteFile(r.claim(), []byte(strings.Replace(string(b), old, text, 1)), 0o600))
}

// ageClaim makes the claim look as if its last record were this long ago.
func (r *rig) ageClaim(age time.Duration) {
	r.Helper()
	at := time.Now().Add(-age)
	r.must(os.Chtimes(r.claim(), at, at))
}

// sameInode puts a new file with this content in place of a.part that has its inode. It skips the test where the file system
// does not use inodes again.
func (r *rig) sameInode(content string) {
	r.Helper()
	was, err := statusOfPath(r.part)
	r.must(err, os.Remove(r.part))
	for i := range 300 {
		name := filepath.Join(r.dir, fmt.Sprint("try", i))
		r.must(os.WriteFile(name, []byte(content), 0o644))
		if is, err := statusOfPath(name); err == nil && is.Inode == was.Inode {
			r.must(os.Rename(name, r.part))
			return
		}
	}
	r.Skip("the inode is not used again")
}

// write replaces the content of a.part in place.
func (r *rig) write(content string) {
	r.Helper()
	r.must(os.WriteFile(r.part, []byte(content), 0o644))
}

func TestFind(t *testing.T) {
	own := map[string]func(r *rig){
		"as it was left":                        func(*rig) {},
		"after a kill":                          func(r *rig) { r.download(false) },
		"after a kill in the middle of a write": func(r *rig) { r.download(false); r.edit("=", "+"); r.write("honest...") },
		"after a power failure":                 func(r *rig) { r.download(false); r.edit(bootID(), "another"); r.edit(`"synced":0`, `"synced":6`) },
		"on another device after a reboot":      func(r *rig) { r.edit(bootID(), "another"); r.edit(`"device":`, `"device":9`) },
		"by way of a link to the folder": func(r *rig) {
			r.must(os.Symlink(r.dir, filepath.Join(r.dir, "link")))
			f, err := os.Open(filepath.Join(r.dir, "link", "a.part"))
			r.must(err)
			defer f.Close()
			_, err = r.Find(f)
			r.must(err)
		},
	}
	for name, do := range own {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			do(r)
			if found, err := r.find("a.part"); err != nil || found.Have != 6 || found.Object != object {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
	foreign := map[string]func(r *rig){
		"no claim":                  func(r *rig) { r.must(os.Remove(r.claim())) },
		"another file":              func(r *rig) { r.must(os.Rename(r.part, r.part+".old")); r.write("foreign") },
		"a new file with its inode": func(r *rig) { r.sameInode("foreign") },
		"a copy": func(r *rig) {
			r.must(os.Rename(r.part, r.part+".old"), os.Link(r.part+".old", r.part+".link"))
			b, err := os.ReadFile(r.part + ".old")
			r.must(err, os.WriteFile(r.part, b, 0o644))
		},
		"changed in place": func(r *rig) { r.write("foreign") },
		"changed in place, with its old times": func(r *rig) {
			info, err := os.Stat(r.part)
			r.must(err)
			r.write("foreig")
			r.must(os.Chtimes(r.part, info.ModTime(), info.ModTime()))
		},
		"changed after a kill":                    func(r *rig) { r.download(false); r.write("foreign") },
		"changed long after a kill while writing": func(r *rig) { r.download(false); r.edit("=", "+"); r.write("foreign"); r.ageClaim(2 * killSlack) },
		"changed long after a power failure": func(r *rig) {
			r.download(false)
			r.edit(bootID(), "another")
			r.write("foreign")
			r.ageClaim(2 * powerSlack)
		},
		"another file with its inode after a power failure": func(r *rig) {
			r.download(false)
			r.edit(bootID(), "another")
			r.sameInode("foreign")
		},
		"another file after a power failure": func(r *rig) {
			r.download(false)
			r.edit(bootID(), "another")
			r.must(os.Rename(r.part, r.part+".old"))
			r.write("foreign")
		},
		"restored to a time before the last sync": func(r *rig) {
			r.download(false)
			r.edit(bootID(), "another")
			r.edit(`"at_sync":0`, fmt.Sprintf(`"at_sync":%d`, time.Now().Add(time.Hour).UnixNano()))
		},
		"cut":   func(r *rig) { r.must(os.Truncate(r.part, 3)) },
		"grown": func(r *rig) { r.write("honest and more") },
		"a hard link to another file": func(r *rig) {
			r.must(os.WriteFile(r.part+".else", []byte("foreign"), 0o644), os.Remove(r.part), os.Link(r.part+".else", r.part))
		},
		"the claim of another file": func(r *rig) {
			other := filepath.Join(r.dir, "b.part")
			path, err := r.claimOf(other)
			r.must(err, os.Rename(r.claim(), path), os.Rename(r.part, r.part+".old"), os.WriteFile(other, []byte("foreign"), 0o644))
			r.must(os.Rename(path, r.claim()), os.Rename(other, r.part))
		},
		"a claim that others may write to": func(r *rig) { r.must(os.Chmod(r.claim(), 0o606)) },
		"a claim that is a link": func(r *rig) {
			r.must(os.Rename(r.claim(), r.claim()+".else"), os.Symlink(r.claim()+".else", r.claim()))
		},
		"a claim that is a pipe":                  func(r *rig) { r.must(os.Remove(r.claim()), unix.Mkfifo(r.claim(), 0o600)) },
		"a state folder that others may write to": func(r *rig) { r.must(os.Chmod(string(r.Store), 0o777)) },
		"a claim without a count":                 func(r *rig) { r.edit("=", "?") },
		"a negative count":                        func(r *rig) { r.edit("6", "-") },
		"a claim of another version":              func(r *rig) { r.edit(`"format":1`, `"format":2`) },
	}
	if os.Geteuid() == 0 {
		foreign["another user's claim"] = func(r *rig) { r.must(os.Chown(r.claim(), 12345, -1)) }
		foreign["another user's state folder"] = func(r *rig) { r.must(os.Chown(string(r.Store), 12345, -1)) }
	}
	for name, do := range foreign {
		t.Run("R218 "+name, func(t *testing.T) {
			r := newRig(t)
			do(r)
			if found, err := r.find("a.part"); err == nil {
				t.Errorf("%+v", found)
			}
			before, err := os.ReadFile(r.part)
			r.must(err)
			if err := r.Discard(filepath.Join(r.dir, "a"), []string{object.URL}); err == nil {
				t.Errorf("R218: %q was removed", before)
			}
		})
	}
}

func TestDiscard(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.dir, "a")
	if err := r.Discard(file, []string{"https://h/other"}); err == nil {
		t.Error("R218: it belongs to another URL")
	}
	r.must(r.Discard(file, []string{"https://h/other", object.URL}))
	for _, path := range []string{r.part, r.claim()} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := r.Discard(file, []string{object.URL}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestCompleted: only a file that a download put there is complete.
func TestCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r *rig, file string)
		want bool
	}{
		"renamed": {func(r *rig, file string) { r.must(os.Rename(r.part, file)) }, true},
		"not yet": {func(*rig, string) {}, false},
		"a copy": {func(r *rig, file string) {
			r.must(os.Link(r.part, r.part+".old"), os.WriteFile(file, []byte("honest"), 0o644))
		}, false},
		"another size": {func(r *rig, file string) { r.must(os.Rename(r.part, file), os.Truncate(file, 5)) }, false},
		"the inode":    {func(r *rig, file string) { r.sameInode("notes!"); r.must(os.Rename(r.part, file)) }, false},
		"a link":       {func(r *rig, file string) { r.must(os.Symlink(r.part, file)) }, false},
		"not complete": {func(r *rig, file string) { r.download(true); r.must(os.Rename(r.part, file)) }, false},
		"another URL":  {func(r *rig, file string) { r.must(os.Rename(r.part, file)); r.edit("/a\",", "/b\",") }, false},
	} {
		t.Run("R220 "+name, func(t *testing.T) {
			r := newRig(t)
			f, err := os.OpenFile(r.part, os.O_RDWR, 0)
			r.must(err)
			defer f.Close()
			recorder, err := r.Claim(f, Found{Object: object})
			r.must(err, recorder.Stop())
			file := filepath.Join(r.dir, "a")
			recorder.Complete(file, 6)
			f.Close() // an open file would keep its inode
			c.do(r, file)
			if size, ok := r.Completed(file, []string{object.URL}); ok != c.want || ok && size != 6 {
				t.Errorf("%d, %v", size, ok)
			}
			recorder.Remove()
			if _, ok := r.Completed(file, []string{object.URL}); ok {
				t.Error("complete without a claim")
			}
		})
	}
}

// TestOtherName: a file that is renamed to another name than its partial file's is complete, too.
func TestOtherName(t *testing.T) {
	r := newRig(t)
	f, err := os.OpenFile(r.part, os.O_RDWR, 0)
	r.must(err)
	defer f.Close()
	recorder, err := r.Claim(f, Found{Object: object})
	r.must(err, recorder.Stop())
	first, second := filepath.Join(r.dir, "a"), filepath.Join(r.dir, "a.1")
	recorder.Complete(first, 6)
	recorder.Complete(second, 6)
	r.must(os.Rename(r.part, second))
	if _, ok := r.Completed(second, []string{object.URL}); !ok {
		t.Error("not complete")
	}
	r.Forget(second)
	if left, err := os.ReadDir(string(r.Store)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestWithoutBirth: where birth times are unknown, the inode alone proves nothing.
func TestWithoutBirth(t *testing.T) {
	is := status{identity: identity{Device: 1, Inode: 2}, size: 9, changed: 100, regular: true}
	c := claim{count: count{prefix: 6, changed: 100}, identity: is.identity, Boot: bootID(), Closed: true}
	if err := c.proves(is, 100); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*status){
		"changed":      func(s *status) { s.changed++ },
		"other device": func(s *status) { s.Device++ },
		"other inode":  func(s *status) { s.Inode++ },
		"now it tells": func(s *status) { s.Born = 5 },
		"not regular":  func(s *status) { s.regular = false },
	} {
		now := is
		change(&now)
		if c.proves(now, 100) == nil {
			t.Errorf("R218: %s", name)
		}
	}
	c.Boot = "another"
	is.Device++
	if c.proves(is, 100) == nil {
		t.Error("R218: another device after a reboot")
	}
	c.changed = 3e9
	coarse := status{identity: c.identity, size: 9, changed: 3e9, regular: true}
	if c.proves(coarse, 3e9) == nil {
		t.Error("R218: a change within the same second would not show")
	}
	// FAT.
	c.Born, c.changed = 7, 2e9
	fat := status{identity: identity{Device: 5, Inode: 9, Born: 7}, size: 9, changed: 2e9, regular: true, made: true}
	if err := c.proves(fat, 3e9); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*status){
		"born later": func(s *status) { s.Born++ }, "changed": func(s *status) { s.changed += 2e9 }, "not FAT": func(s *status) { s.made = false },
	} {
		now := fat
		change(&now)
		if c.proves(now, 3e9) == nil {
			t.Errorf("R218: FAT, %s", name)
		}
	}
}

// TestBounded: old claims go, and the oldest if there are too many.
func TestBounded(t *testing.T) {
	r := newRig(t)
	for i := range maxClaims + 5 {
		r.must(os.WriteFile(filepath.Join(string(r.Store), fmt.Sprint(i)), nil, 0o600))
	}
	old := filepath.Join(string(r.Store), "old")
	at := time.Now().Add(-maxAge - time.Hour)
	r.must(os.WriteFile(old, nil, 0o600), os.Chtimes(old, at, at))
	r.download(true)
	left, err := os.ReadDir(string(r.Store))
	if err != nil || len(left) > maxClaims {
		t.Errorf("%d claims are left, %v", len(left), err)
	}
	if _, err := os.Lstat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("the old one is left")
	}
	if _, err := r.find("a.part"); err != nil {
		t.Error(err)
	}
}
