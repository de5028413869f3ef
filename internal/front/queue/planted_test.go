package queue

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// half orders a download of /gate/1, and pauses it in the middle.
func (r *rig) half(q *Queue) (gid string) {
	r.Helper()
	gid = r.add(q, "gate/1")
	synctest.Wait()
	if _, err := q.Pause(gid); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	if d := r.is(q, gid, Paused); d.Have != size/2 {
		r.Fatalf("%+v", d)
	}
	r.tick(r.file("1.part"))
	return gid
}

// must fails the test if one of several steps failed.
func (r *rig) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
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

// file is the path of a file in the folder.
func (r *rig) file(name string) string { return filepath.Join(r.Dir, name) }

// plant puts a file with bytes of another site into the folder.
func (r *rig) plant(name string) {
	r.Helper()
	r.must(os.MkdirAll(r.Dir, 0o755), os.WriteFile(r.file(name), bytes.Repeat([]byte("E"), size*9/10), 0o644))
}

// sidecar is what another program may put beside a partial file.
func (r *rig) sidecar(name string) {
	r.Helper()
	mark := sha256.Sum256([]byte("\"v1\"\n\n\n"))
	text := fmt.Sprintf("%-19d\n"+`{"format":2,"url":"http://origin.example/gate/1","place":"http://origin.example:80/gate/1",`+
		`"validator":"\"v1\"","mark":"%x","size":%d,"synced":%d,"boot":""}`+"\n", size*9/10, mark[:16], size, size*9/10)
	r.must(os.WriteFile(r.file(name), []byte(text), 0o600))
}

// sameInode puts a new file in place of another that has its inode, if the file system uses inodes again soon.
func (r *rig) sameInode(name string, content []byte) {
	r.Helper()
	was, err := os.Stat(r.file(name))
	r.must(err, os.Remove(r.file(name)))
	for i := range 300 {
		try := r.file(fmt.Sprint("try", i)) // in the same folder, where an inode is used again soonest
		defer os.Remove(try)
		r.must(os.WriteFile(try, content, 0o644))
		if is, err := os.Stat(try); err == nil && os.SameFile(is, was) {
			r.must(os.Rename(try, r.file(name)))
			return
		}
	}
	r.must(os.WriteFile(r.file(name), content, 0o644))
}

// completes fails the test unless a download becomes complete with exactly the bytes of the object, wherever it is.
func (r *rig) completes(q *Queue, gid string) (name string) {
	r.Helper()
	synctest.Wait()
	d := r.is(q, gid, Complete)
	b, err := os.ReadFile(d.File)
	if err != nil || len(b) != size {
		r.Fatalf("%s has %d bytes, %v", d.File, len(b), err)
	}
	for i := range b {
		if b[i] != byteAt("1", int64(i)) {
			r.Fatalf("%s: byte %d is not the object's", d.File, i)
		}
	}
	return filepath.Base(d.File)
}

// TestPlanted: a download never uses, removes or counts as its own a byte that it did not write, whatever stands in its folder
// before it begins or after a restart.
func TestPlanted(t *testing.T) {
	notes := []byte("my own notes\n")
	kept := func(r *rig, name string, content []byte) {
		r.Helper()
		if b, err := os.ReadFile(r.file(name)); err != nil || !bytes.Equal(b, content) && content != nil {
			r.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	for name, c := range map[string]struct {
		before func(r *rig) // the order; nil = nothing
		during func(r *rig) // while the half of the download is there, and no program runs
		is     string       // the name of the complete file
		after  func(r *rig)
	}{
		"R218 a partial file": {before: func(r *rig) { r.plant("1.part") }, is: "1.1"},
		"R218 a partial file with a sidecar": {
			before: func(r *rig) { r.plant("1.part"); r.sidecar("1.part.json") }, is: "1.1",
		},
		"R218 another file in its place": {
			during: func(r *rig) { r.must(os.Remove(r.file("1.part"))); r.plant("1.part") }, is: "1.1",
		},
		"R218 another file with its inode": {
			during: func(r *rig) { r.sameInode("1.part", bytes.Repeat([]byte("E"), size*9/10)) }, is: "1.1",
		},
		"R218 a restored backup": {during: func(r *rig) {
			b, err := os.ReadFile(r.file("1.part"))
			r.must(err, os.Remove(r.file("1.part")))
			clear(b[size/4:])
			r.must(os.WriteFile(r.file("1.part"), b, 0o644))
		}, is: "1.1"},
		"R218 other bytes in the same file": {during: func(r *rig) { r.plant("1.part") }, is: "1.1"},
		"R218 zeros in the same file": {
			during: func(r *rig) { r.must(os.Truncate(r.file("1.part"), 0), os.Truncate(r.file("1.part"), size/2)) }, is: "1.1",
		},
		"R218 fewer bytes": {during: func(r *rig) { r.must(os.Truncate(r.file("1.part"), size/4)) }, is: "1.1"},
		"R218 a link": {during: func(r *rig) {
			r.plant("else")
			r.must(os.Remove(r.file("1.part")), os.Symlink(r.file("else"), r.file("1.part")))
		}, is: "1.1", after: func(r *rig) { kept(r, "else", bytes.Repeat([]byte("E"), size*9/10)) }},
		"R218 a hard link": {during: func(r *rig) {
			r.plant("else")
			r.must(os.Remove(r.file("1.part")), os.Link(r.file("else"), r.file("1.part")))
		}, is: "1.1", after: func(r *rig) { kept(r, "else", bytes.Repeat([]byte("E"), size*9/10)) }},
		"R218 the list alone was restored": {during: func(r *rig) { r.must(os.RemoveAll(string(r.Partial))) }, is: "1.1"},
		"R220 notes with its inode and name": {
			during: func(r *rig) { r.sameInode("1.part", notes); r.must(os.Rename(r.file("1.part"), r.file("1"))) },
			is:     "1.1", after: func(r *rig) { kept(r, "1", notes) },
		},
		"R220 the partial file under the file's name": {
			during: func(r *rig) { r.must(os.Rename(r.file("1.part"), r.file("1"))) }, is: "1.1",
		},
		"R220 bytes of the right size under its name": {
			during: func(r *rig) {
				r.must(os.Remove(r.file("1.part")), os.WriteFile(r.file("1"), bytes.Repeat([]byte("E"), size), 0o644))
			},
			is: "1.1", after: func(r *rig) { kept(r, "1", bytes.Repeat([]byte("E"), size)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				q, stop := r.run()
				if c.before != nil {
					c.before(r)
				}
				gid := ""
				if c.during != nil {
					gid = r.half(q)
					stop()
					c.during(r)
					q, stop = r.run()
					if _, err := q.Unpause(gid); err != nil {
						t.Fatalf("it is not paused any more: %v", err)
					}
				} else {
					gid = r.add(q, "gate/1")
				}
				close(r.origin.open)
				if is := r.completes(q, gid); is != c.is {
					t.Errorf("it is complete as %s, want %s", is, c.is)
				}
				if c.after != nil {
					c.after(r)
				}
				stop()
			})
		})
	}
	for name, plant := range map[string]func(r *rig){
		"another file":       func(r *rig) { r.must(os.Remove(r.file("1.part"))); r.plant("1.part") },
		"one with its inode": func(r *rig) { r.sameInode("1.part", notes) },
		"a changed one":      func(r *rig) { r.plant("1.part") },
	} {
		t.Run("R218 "+name+" stays when the download is removed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				q, stop := r.run()
				gid := r.half(q)
				plant(r)
				if _, err := q.Remove(gid); err != nil {
					t.Error(err)
				}
				kept(r, "1.part", nil)
				stop()
			})
		})
	}
	t.Run("R219 a server's name", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			q, stop := r.run()
			for _, name := range []string{"1.part", "1.PART", "1.part.json"} {
				r.add(q, name)
			}
			synctest.Wait()
			gid := r.add(q, "gate/1")
			close(r.origin.open)
			if is := r.completes(q, gid); is != "1" {
				t.Errorf("it is complete as %s", is)
			}
			for _, name := range []string{"1.part", "1.PART"} {
				if _, err := os.Lstat(r.file(name)); err == nil {
					t.Errorf("R219: there is a %s", name)
				}
			}
			stop()
		})
	})
}

// TestDeliveringURL: a download continues with the URL that has delivered, also after a restart.
func TestDeliveringURL(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("R221 restart %v", restart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				q, stop := r.run()
				gid, err := q.Add(Order{URLs: []string{"http://origin.example/late/1", "http://origin.example/gate/1"}, Out: "1"}, false, -1)
				r.must(err)
				synctest.Wait()
				_, err = q.Pause(gid)
				r.must(err)
				synctest.Wait()
				r.is(q, gid, Paused)
				if restart {
					stop()
					q, stop = r.run()
				}
				_, err = q.Unpause(gid)
				r.must(err)
				close(r.origin.open)
				if is := r.completes(q, gid); is != "1" {
					t.Errorf("it is complete as %s", is)
				}
				if sent := r.origin.sent.Load(); sent != size {
					t.Errorf("%d bytes were fetched, the object has %d", sent, size)
				}
				stop()
			})
		})
	}
	t.Run("R221 it fails, and another one begins anew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.origin.breaks.Store(100)
			q, stop := r.run()
			gid, err := q.Add(Order{URLs: []string{"http://origin.example/broken/1", "http://origin.example/b/1"}, Out: "1"}, false, -1)
			r.must(err)
			events, deaf := q.Listen()
			for e := range events {
				if e.Status != Active {
					break
				}
			}
			deaf()
			if is := r.completes(q, gid); is != "1" {
				t.Errorf("it is complete as %s", is)
			}
			if sent := r.origin.sent.Load(); sent != size+size/2 {
				t.Errorf("%d bytes were fetched", sent)
			}
			stop()
		})
	})
}
