package get

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// must fails the test if one of several steps failed.
func (r *rig) must(errs ...error) {
	r.Helper()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
}

// other is what another site delivered under a name of this download: as many bytes as it kept, or more.
var other = bytes.Repeat([]byte("E"), mid-1000)

// sidecar is a file that another program may put beside a .part, to vouch for it.
func (r *rig) sidecar(s *origintest.Server, name string) {
	r.Helper()
	r.write(name, fmt.Appendf(nil, "%-19d\n"+`{"format":2,"url":%q,"place":%q,"validator":"\"v1\"","mark":%q,"size":%d,"synced":%d,"boot":""}`+"\n",
		len(other), s.URL(), s.URL(), markOfObject(s.Object()), mid, len(other)))
	r.must(os.Chmod(r.path(name), 0o600))
}

// sameInode puts a new file in place of another that has its inode, if the file system uses inodes again soon.
func (r *rig) sameInode(name string, content []byte) {
	r.Helper()
	was, err := os.Stat(r.path(name))
	r.must(err, os.Remove(r.path(name)))
	for i := range 300 {
		try := fmt.Sprint("try", i)
		defer os.Remove(r.path(try))
		r.write(try, content)
		if is, err := os.Stat(r.path(try)); err == nil && os.SameFile(is, was) {
			r.must(os.Rename(r.path(try), r.path(name)))
			return
		}
	}
	r.write(name, content)
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

// backup restores the first half of a file in the way that do says, and zeros instead of the rest.
func (r *rig) backup(name string, do func(content []byte)) {
	r.Helper()
	info, err := os.Stat(r.path(name))
	b, rerr := os.ReadFile(r.path(name))
	r.must(err, rerr)
	clear(b[len(b)/2:])
	do(b)
	r.must(os.Chtimes(r.path(name), info.ModTime(), info.ModTime()))
}

// TestPlanted: whatever stands where a download kept its bytes, or where one would keep its state, --resume uses no byte of it that
// the download did not write there.
func TestPlanted(t *testing.T) {
	for name, plant := range map[string]func(r *rig, s *origintest.Server){
		"a .part": func(r *rig, s *origintest.Server) { r.forget("object.part"); r.sameInode("object.part", other) },
		"a .part and its sidecar": func(r *rig, s *origintest.Server) {
			r.forget("object.part")
			r.sameInode("object.part", other)
			r.sidecar(s, "object.part.json")
		},
		"a .part, its sidecar and a new one": func(r *rig, s *origintest.Server) {
			r.forget("object.part")
			r.write("object.part", other)
			r.sidecar(s, "object.part.json")
			r.sidecar(s, "object.part.json.new")
		},
		"a sidecar beside another .part": func(r *rig, s *origintest.Server) {
			r.must(os.Remove(r.path("object.part")))
			r.write("object.part", other)
			r.sidecar(s, "object.part.json")
		},
		"another inode": func(r *rig, s *origintest.Server) {
			r.must(os.Rename(r.path("object.part"), r.path("old")))
			r.write("object.part", other)
		},
		"the same inode, another birth time": func(r *rig, s *origintest.Server) { r.sameInode("object.part", other) },
		"other bytes in place":               func(r *rig, s *origintest.Server) { r.write("object.part", other) },
		"other bytes in place, with the old time": func(r *rig, s *origintest.Server) {
			info, err := os.Stat(r.path("object.part"))
			r.must(err)
			r.write("object.part", other)
			r.must(os.Chtimes(r.path("object.part"), info.ModTime(), info.ModTime()))
		},
		"a restored backup": func(r *rig, s *origintest.Server) {
			r.backup("object.part", func(b []byte) { r.must(os.Remove(r.path("object.part"))); r.write("object.part", b) })
		},
		"a restored backup with the same inode": func(r *rig, s *origintest.Server) {
			r.backup("object.part", func(b []byte) { r.sameInode("object.part", b) })
		},
		"a backup restored in place": func(r *rig, s *origintest.Server) {
			r.backup("object.part", func(b []byte) { r.write("object.part", b) })
		},
		"cut, and zeros instead": func(r *rig, s *origintest.Server) {
			info, err := os.Stat(r.path("object.part"))
			r.must(err, os.Truncate(r.path("object.part"), 1000), os.Truncate(r.path("object.part"), info.Size()))
		},
		"one byte of it": func(r *rig, s *origintest.Server) {
			f, err := os.OpenFile(r.path("object.part"), os.O_WRONLY, 0)
			r.must(err)
			defer f.Close()
			_, err = f.WriteAt([]byte("E"), 1000)
			r.must(err)
		},
		"grown": func(r *rig, s *origintest.Server) {
			f, err := os.OpenFile(r.path("object.part"), os.O_WRONLY|os.O_APPEND, 0)
			r.must(err)
			defer f.Close()
			_, err = f.Write(other[:1000])
			r.must(err)
		},
		"a link": func(r *rig, s *origintest.Server) {
			r.write("else", other)
			r.must(os.Remove(r.path("object.part")), os.Symlink("else", r.path("object.part")))
		},
		"a hard link": func(r *rig, s *origintest.Server) {
			r.write("else", other)
			r.must(os.Remove(r.path("object.part")), os.Link(r.path("else"), r.path("object.part")))
		},
		"another name of the .part of another object": func(r *rig, s *origintest.Server) {
			r.write("second.part", other)
			r.must(os.Rename(r.path("object.part"), r.path("third.part")), os.Rename(r.path("second.part"), r.path("object.part")))
		},
		"the state of another .part": func(r *rig, s *origintest.Server) {
			path := r.stateOf("object.part")
			state, err := os.ReadFile(path)
			r.must(err, os.Remove(path), os.Remove(r.path("object.part")))
			r.write("object.part", other)
			r.must(os.WriteFile(path, state, 0o600))
		},
		"longer than the object": func(r *rig, s *origintest.Server) { r.write("object.part", append(other, other...)) },
		"changed after a kill while it wrote": func(r *rig, s *origintest.Server) {
			r.killed("object.part")
			r.write("object.part", other)
			at := time.Now().Add(-time.Minute)
			r.must(os.Chtimes(r.stateOf("object.part"), at, at))
		},
	} {
		t.Run("R218 "+name, func(t *testing.T) {
			s := newMortal(t)
			r := newRig(t, toNodes(s.Server), nil)
			r.cut(s, Options{})
			r.tick(r.path("object.part"))
			plant(r, s.Server)
			_, err := r.get(t.Context(), s.URL(), Options{Resume: true})
			b, rerr := os.ReadFile(r.path("object"))
			if rerr == nil && (len(b) != mid || s.Object().Mismatch(b, 0) >= 0) {
				t.Errorf("R218: %d bytes, the first wrong one is %d (%v)", len(b), s.Object().Mismatch(b, 0), err)
			}
			if (err == nil) != (rerr == nil) {
				t.Errorf("%v, and the file: %v", err, rerr)
			}
		})
	}
}

// TestPlantedForApp: as TestPlanted, for a file that the app keeps.
func TestPlantedForApp(t *testing.T) {
	for name, plant := range map[string]func(r *rig){
		"another inode":  func(r *rig) { r.must(os.Rename(r.path("held"), r.path("old"))); r.write("held", other) },
		"the same inode": func(r *rig) { r.sameInode("held", other) },
		"a restored backup": func(r *rig) {
			r.backup("held", func(b []byte) { r.must(os.Rename(r.path("held"), r.path("old"))); r.write("held", b) })
		},
		"cut": func(r *rig) { r.must(os.Truncate(r.path("held"), 1000)) },
		"a link": func(r *rig) {
			r.write("else", other)
			r.must(os.Rename(r.path("held"), r.path("old")), os.Symlink("else", r.path("held")))
		},
		"a hard link": func(r *rig) {
			r.write("else", other)
			r.must(os.Rename(r.path("held"), r.path("old")), os.Link(r.path("else"), r.path("held")))
		},
	} {
		t.Run("R218 "+name, func(t *testing.T) {
			s := newMortal(t)
			r := newRig(t, toNodes(s.Server), nil)
			h := r.hold()
			if _, _, err := r.fill(t.Context(), s.URL(), h); err == nil || h.Have == 0 {
				t.Fatalf("%d bytes, %v", h.Have, err)
			}
			h.File.Close()
			s.well.Store(true)
			plant(r)
			again := r.hold()
			again.Version, again.Have = h.Version, h.Have
			if _, _, err := r.fill(t.Context(), s.URL(), again); err != nil {
				t.Fatal(err)
			}
			r.isFilled(again, s.Object())
		})
	}
}
