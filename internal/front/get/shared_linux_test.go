package get

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// The users in these tests: files of the stranger are in the folder of the victim.
const (
	victim   = 65534
	stranger = 65533
)

// needRoot skips a test that creates files of several users unless it runs as root.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make files of another user")
	}
}

// give makes the stranger the owner of a file.
func (r *rig) give(name string) {
	r.Helper()
	if err := os.Lchown(r.path(name), stranger, stranger); err != nil {
		r.Fatal(err)
	}
}

// reads fails the test unless the content of a file is want.
func (r *rig) reads(name, want string) {
	r.Helper()
	if b, err := os.ReadFile(r.path(name)); err != nil || string(b) != want {
		r.Errorf("%s: %d bytes like %.20q, %v, want %.20q", name, len(b), b, err, want)
	}
}

// pipe makes a named pipe and returns a function that reads it.
func (r *rig) pipe(name string) (received func() []byte) {
	r.Helper()
	if err := unix.Mkfifo(r.path(name), 0o666); err != nil {
		r.Fatal(err)
	}
	return r.reader(name)
}

// reader opens a pipe for reading, so that writers do not block, and returns a function that reads its bytes.
func (r *rig) reader(name string) (received func() []byte) {
	r.Helper()
	fd, err := unix.Open(r.path(name), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { unix.Close(fd) })
	return func() (all []byte) {
		b := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, b)
			if n <= 0 || err != nil {
				return all
			}
			all = append(all, b[:n]...)
		}
	}
}

func sumOf(t *testing.T, o origintest.Object) *Checksum {
	return checksum(t, fmt.Sprintf("sha256:%x", o.SHA256()))
}

// small is the size of an object that fits into a pipe.
const small = 20 << 10

// TestPipes: a pipe or a device gets the bytes only if the user named it and no other user made it.
func TestPipes(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: small})
	sum := sumOf(t, s.Object())
	for name, o := range map[string]Options{
		"the URL names it":               {},
		"the URL names it, --force":      {Force: true},
		"the URL names it, --checksum":   {Checksum: sum},
		"the URL names it, --resume":     {Resume: true},
		"the server names it":            {ServerName: true},
		"the server names it, --force":   {ServerName: true, Force: true},
		"the server names it and folder": {ServerName: true, Dir: "."},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, toNodes(s), nil)
			received := r.pipe("object")
			_, err := r.get(t.Context(), s.URL(), o)
			r.fails(err, File, "object is not a regular file", "-o")
			if got := received(); len(got) > 0 {
				t.Errorf("%d bytes went into the pipe", len(got))
			}
			r.holds("object")
		})
	}
	t.Run("the URL names a link to a device", func(t *testing.T) {
		r := newRig(t, toNodes(s), nil)
		if err := os.Symlink(os.DevNull, r.path("object")); err != nil {
			t.Fatal(err)
		}
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, File, "object is not a regular file", "-o")
		r.holds("object")
	})
	t.Run("the user's own, named by -o", func(t *testing.T) {
		r := newRig(t, toNodes(s), nil)
		received := r.pipe("mine")
		if err := os.Symlink("mine", r.path("link")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mine", "link"} {
			_, err := r.get(t.Context(), s.URL(), Options{Output: name, Checksum: sum})
			if got := received(); err != nil || !bytes.Equal(got, s.Object().Bytes(0, small)) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
		r.holds("link", "mine")
	})
	t.Run("the stranger's, named by -o", func(t *testing.T) {
		needRoot(t)
		r := newRig(t, func(link.Link, string) string { t.Error("connected"); return "127.0.0.1:1" }, nil)
		received := r.pipe("theirs")
		r.give("theirs")
		if err := os.Symlink("theirs", r.path("link")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"theirs", "link"} {
			_, err := r.get(t.Context(), s.URL(), Options{Output: name})
			r.fails(err, File, fmt.Sprintf("%s belongs to user %d", r.path(name), stranger), "choose another")
		}
		if got := received(); len(got) > 0 {
			t.Errorf("%d bytes went into the pipe", len(got))
		}
	})
	t.Run("the stranger's link, named by -o", func(t *testing.T) {
		needRoot(t)
		r := newRig(t, func(link.Link, string) string { t.Error("connected"); return "127.0.0.1:1" }, nil)
		received := r.pipe("mine")
		for at, to := range map[string]string{"device": os.DevNull, "pipe": "mine", "outer": "pipe"} {
			if err := os.Symlink(to, r.path(at)); err != nil {
				t.Fatal(err)
			}
		}
		r.give("device")
		r.give("pipe") // outer, which leads there, belongs to the user
		for name, at := range map[string]string{"device": "device", "pipe": "pipe", "outer": "pipe"} {
			_, err := r.get(t.Context(), s.URL(), Options{Output: name})
			r.fails(err, File, fmt.Sprintf("%s belongs to user %d", r.path(at), stranger), "choose another")
		}
		if got := received(); len(got) > 0 {
			t.Errorf("%d bytes went into the pipe", len(got))
		}
	})
	t.Run("one without a name, as /dev/stdout is behind sudo", func(t *testing.T) {
		r := newRig(t, toNodes(s), nil)
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		defer to.Close()
		if os.Getuid() == 0 {
			if err := to.Chown(stranger, stranger); err != nil { // the user who called sudo made it
				t.Fatal(err)
			}
		}
		name := fmt.Sprintf("/proc/self/fd/%d", to.Fd())
		if _, err := r.get(t.Context(), s.URL(), Options{Output: name}); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, small)
		if n, err := from.Read(got); err != nil || !bytes.Equal(got[:n], s.Object().Bytes(0, int64(n))) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// TestForeign: a file under the name of a .part is used only if no other user can have written it.
func TestForeign(t *testing.T) {
	type setting struct {
		*rig
		*origintest.Server
	}
	// forge puts a complete .part with wrong bytes, which has a claim, into a folder that all users may write to.
	forge := func(t *testing.T) setting {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		if err := os.Chmod(r.dir, 0o777); err != nil {
			t.Fatal(err)
		}
		r.own("object.part", bytes.Repeat([]byte("x"), mid), objectOf(s))
		return setting{r, s}
	}
	forged := strings.Repeat("x", mid)
	options := map[string]Options{
		"resume": {Resume: true}, "force": {Force: true}, "both": {Resume: true, Force: true}, "neither": {},
	}
	for name, o := range options {
		t.Run("it is the stranger's, "+name, func(t *testing.T) {
			needRoot(t)
			r := forge(t)
			r.give("object.part")
			for _, sum := range []*Checksum{nil, sumOf(t, r.Object())} {
				o.Checksum = sum
				_, err := r.get(t.Context(), r.URL(), o)
				want := fmt.Sprintf("object.part belongs to user %d", stranger)
				if name == "neither" {
					want = "object.part exists"
				}
				r.fails(err, File, want)
			}
			r.reads("object.part", forged)
			r.holds("object.part")
			if len(r.Requests()) > 0 {
				t.Errorf("%d requests", len(r.Requests()))
			}
		})
	}
	for name, spoil := range map[string]struct {
		do   func(r setting) error
		want string
	}{
		"the group may write to the .part": {
			func(r setting) error { return os.Chmod(r.path("object.part"), 0o664) }, "other users may write to it",
		},
		"all may write to the .part": {
			func(r setting) error { return os.Chmod(r.path("object.part"), 0o646) }, "other users may write to it",
		},
		"the .part is another file of the user, too": {
			func(r setting) error { return os.Link(r.path("object.part"), r.path("precious")) }, "more than one hard link",
		},
	} {
		for _, resume := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resume %v", name, resume), func(t *testing.T) {
				r := forge(t)
				if err := spoil.do(r); err != nil {
					t.Fatal(err)
				}
				_, err := r.get(t.Context(), r.URL(), Options{Resume: true})
				r.fails(err, File, spoil.want, "--force")
				r.reads("object.part", forged)
				if len(r.Requests()) > 0 {
					t.Errorf("%d requests", len(r.Requests()))
				}
				if _, err := r.get(t.Context(), r.URL(), Options{Force: true, Resume: resume}); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Lstat(r.path("precious")); err == nil {
					r.reads("precious", forged)
				}
				_ = os.Remove(r.path("precious")) // if it exists
				r.isObject("object", r.Object())
			})
		}
	}
	t.Run("a .part that is a pipe", func(t *testing.T) {
		r := forge(t)
		if err := os.Remove(r.path("object.part")); err != nil {
			t.Fatal(err)
		}
		received := r.pipe("object.part")
		for _, o := range options {
			_, err := r.get(t.Context(), r.URL(), o)
			r.fails(err, File, "object.part")
		}
		if got := received(); len(got) > 0 || len(r.Requests()) > 0 {
			t.Errorf("%d bytes went into the pipe, %d requests", len(got), len(r.Requests()))
		}
	})
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestComplete: a .part that has all bytes becomes the file only if the server or a checksum confirms that they are still those of
// the object.
func TestComplete(t *testing.T) {
	for _, size := range []int64{1, small, mid} {
		complete := func(t *testing.T, faults ...origintest.Fault) (*rig, *origintest.Server) {
			s := origintest.New(t, origintest.Object{Size: size}, faults...)
			r := newRig(t, toNodes(s), nil)
			r.own("object.part", s.Object().Bytes(0, size), objectOf(s))
			return r, s
		}
		t.Run(fmt.Sprintf("%d bytes of the same version", size), func(t *testing.T) {
			r, s := complete(t)
			if _, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil || len(s.Requests()) != 1 {
				t.Errorf("%v, %d requests", err, len(s.Requests()))
			}
			r.isObject("object", s.Object())
		})
		t.Run(fmt.Sprintf("%d bytes of another version", size), func(t *testing.T) {
			r, s := complete(t, origintest.NewVersion())
			if _, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil {
				t.Fatal(err)
			}
			now := &origintest.Exchange{Object: s.Object()}
			origintest.NewVersion()(now)
			r.isObject("object", now.Object)
		})
		t.Run(fmt.Sprintf("%d bytes and a checksum", size), func(t *testing.T) {
			r, s := complete(t)
			if _, err := r.get(t.Context(), s.URL(), Options{Resume: true, Checksum: sumOf(t, s.Object())}); err != nil || len(s.Requests()) > 0 {
				t.Errorf("%v, %d requests", err, len(s.Requests()))
			}
			r.isObject("object", s.Object())
		})
	}
	t.Run("the server cannot be reached", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		r.own("object.part", s.Object().Bytes(0, mid), objectOf(s))
		s.Close()
		_, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		r.fails(err, Network, "--resume")
		r.holds("object.part")
	})
}

// TestMode: other users may not write to a .part, whatever the umask; the file gets the mode that the umask defines.
func TestMode(t *testing.T) {
	for mask, want := range map[int]fs.FileMode{0o000: 0o666, 0o002: 0o664, 0o020: 0o646, 0o022: 0o644, 0o027: 0o640, 0o077: 0o600} {
		t.Run(fmt.Sprintf("umask %03o", mask), func(t *testing.T) {
			s := newMortal(t)
			r := newRig(t, toNodes(s.Server), nil)
			defer unix.Umask(unix.Umask(mask))
			r.cut(s, Options{})
			st, err := os.Stat(r.path("object.part"))
			if err != nil || st.Mode().Perm() != want&^0o022 {
				t.Errorf("the .part has mode %v, %v; want %v", st.Mode().Perm(), err, want&^0o022)
			}
			if res, err := r.get(t.Context(), s.URL(), Options{Resume: true}); err != nil || res.Resumed == 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			r.isObject("object", s.Object())
			if st, err := os.Stat(r.path("object")); err != nil || st.Mode().Perm() != want {
				t.Errorf("the file has mode %v, %v; want %v", st.Mode().Perm(), err, want)
			}
		})
	}
}

// TestSwapped: only the file that was written and hashed gets the name.
func TestSwapped(t *testing.T) {
	for _, force := range []bool{false, true} {
		t.Run(fmt.Sprintf("force %v", force), func(t *testing.T) {
			var r *rig
			swap := sync.OnceFunc(func() {
				if err := os.Rename(r.path("object.part"), r.path("elsewhere")); err != nil {
					t.Error(err)
				}
				r.write("object.part", []byte("forged"))
			})
			s := origintest.New(t, origintest.Object{Size: mid}, func(*origintest.Exchange) { swap() })
			r = newRig(t, toNodes(s), nil)
			want := []string{"elsewhere", "object.part"}
			if force {
				r.write("object", []byte("mine"))
				want = []string{"elsewhere", "object", "object.part"}
			}
			_, err := r.get(t.Context(), s.URL(), Options{Force: force, Checksum: sumOf(t, s.Object())})
			r.fails(err, File, "object.part was replaced", "-d")
			r.holds(want...)
			if r.reads("object.part", "forged"); force {
				r.reads("object", "mine")
			}
		})
	}
}

// TestVictim runs in its own process, as a user without privileges who encounters files of other users.
func TestVictim(t *testing.T) {
	const variable = "TRIBUTARY_GET_VICTIM"
	dir := os.Getenv(variable)
	if dir == "" {
		needRoot(t)
		if os.Getenv("TRIBUTARY_EMULATOR") != "" {
			t.Skip("the kernel cannot start this program")
		}
		dir = t.TempDir()
		if err := errorsOf(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		for name, owner := range map[string]int{"roots": 0, "theirs": stranger} {
			pipe, part := filepath.Join(dir, name), filepath.Join(dir, name+"-file.part")
			err := errorsOf(unix.Mkfifo(pipe, 0o600), os.Chmod(pipe, 0o666), os.Chown(pipe, owner, owner),
				os.WriteFile(part, []byte("x"), 0o600), os.Chown(part, owner, owner))
			if err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestVictim$", "-test.v")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), variable+"="+dir, "TMPDIR="+dir, "GORACE=atexit_sleep_ms=0")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: victim, Gid: victim}}
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestVictim")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	s := origintest.New(t, origintest.Object{Size: small})
	r := newRig(t, toNodes(s), nil)
	r.dir = dir
	for _, name := range []string{"roots-file", "theirs-file"} {
		for _, o := range []Options{{Resume: true}, {Force: true}} {
			o.Output = name
			_, err := r.get(t.Context(), s.URL(), o)
			r.fails(err, File, name+".part belongs to user ", "choose another folder")
		}
	}
	theirs, roots := r.reader("theirs"), r.reader("roots")
	_, err := r.get(t.Context(), s.URL(), Options{Output: "theirs"})
	r.fails(err, File, "theirs belongs to user ")
	_, err = r.get(t.Context(), s.URL(), Options{Output: "roots"})
	if got := roots(); err != nil || len(got) != small {
		t.Errorf("%d bytes went into the pipe of root, %v", len(got), err)
	}
	if got := theirs(); len(got) > 0 {
		t.Errorf("%d bytes went into the pipe of the stranger", len(got))
	}
}
