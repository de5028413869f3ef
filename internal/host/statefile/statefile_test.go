package statefile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestPath(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/var/lib/tributary/x":        {"STATE_DIRECTORY": "/var/lib/tributary", "XDG_STATE_HOME": "/x", "HOME": "/h"},
		"/x/tributary/x":              {"XDG_STATE_HOME": "/x", "HOME": "/h"},
		"/h/.local/state/tributary/x": {"XDG_STATE_HOME": "x", "HOME": "/h"},
	} {
		if got := Path(func(k string) string { return env[k] }, "x"); got != want {
			t.Errorf("%v: %s", env, got)
		}
	}
}

// TestReplace: the file and its folder are private, and no other file is left.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "state")
	if _, err := Read(path, 10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	unlock, err := Lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, content := range []string{"one", "another one", ""} {
		if err := Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, 100); err != nil || string(got) != content {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, path + ".lock": 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if is, err := os.Stat(name); err != nil || is.Mode() != mode {
			t.Errorf("%s: %v, %v", name, is.Mode(), err)
		}
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestRead: a file that another user may have written is not read.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	text := bytes.Repeat([]byte("x"), 100)
	for name, mode := range map[string]os.FileMode{"good": 0o600, "readable": 0o644, "group": 0o620, "all": 0o602} {
		if err := errors.Join(os.WriteFile(file(name), text, mode), os.Chmod(file(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Symlink(file("good"), file("link")), os.Mkdir(file("folder"), 0o700), syscall.Mkfifo(file("fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"good": nil, "readable": nil, "group": ErrForeign, "all": ErrForeign, "link": ErrForeign, "folder": ErrForeign, "fifo": ErrForeign,
	} {
		got, err := Read(file(name), 10)
		if !errors.Is(err, want) || err == nil && len(got) != 10 || err != nil && got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can give files away
	}
	if err := os.Chown(file("good"), 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file("good"), 10); !errors.Is(err, ErrForeign) {
		t.Errorf("another user's: %v", err)
	}
}

// TestOwn: a folder that another user may have created, or may write to, is rejected, and so is every folder below it.
func TestOwn(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"own": 0o700, "readable": 0o755, "group": 0o775, "all": 0o777, "sticky": 0o777 | os.ModeSticky} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.Chmod(filepath.Join(dir, name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(in("file"), nil, 0o600), os.Symlink(in("own"), in("link")), os.Symlink(in("all"), in("link to all")),
	); err != nil {
		t.Fatal(err)
	}
	want := map[string]error{
		"own": nil, "readable": nil, "group": nil, "all": ErrForeign, "sticky": ErrForeign, "file": ErrForeign,
		"link": nil, "link to all": ErrForeign,
	}
	if os.Geteuid() == 0 { // only root can give files away
		if err := errors.Join(
			os.Mkdir(in("other's"), 0o700), os.Chown(in("other's"), 12345, -1),
			os.Symlink(in("own"), in("other's link")), os.Lchown(in("other's link"), 12345, -1),
			os.Symlink(in("other's"), in("link to other's")),
		); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(in("other group"), 0o700), os.Chown(in("other group"), -1, 12345), os.Chmod(in("other group"), 0o775)); err != nil {
			t.Fatal(err)
		}
		want["other group"] = ErrForeign
		want["other's"], want["other's link"], want["link to other's"] = ErrForeign, ErrForeign, ErrForeign
	}
	for name, want := range want {
		for _, below := range []string{"state", "new/state", "new/folders/state"} {
			if name == "file" && below != "state" {
				continue
			}
			if err := Own(filepath.Join(dir, name, below)); !errors.Is(err, want) {
				t.Errorf("%s/%s: %v, want %v", name, below, err, want)
			}
		}
	}
	if err := Own(in("file/new/state")); err == nil {
		t.Error("below a file")
	}
	// Only the nearest folder matters, not those above it.
	if err := os.Mkdir(in("sticky/own"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Own(in("sticky/own/new/state")); err != nil {
		t.Errorf("one's own in a public one: %v", err)
	}
	if entries, err := os.ReadDir(in("own")); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v: it makes something", entries, err)
	}
}

// TestLock: the lock has one holder at a time, and waiting for it can time out.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	unlock, err := Lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Lock(gone, path); !errors.Is(err, context.Canceled) {
		t.Errorf("held by another: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, ctx := range map[string]context.Context{"for ever": context.Background(), "a while": ctx} {
		t.Run("waits "+name, func(t *testing.T) {
			type held struct {
				unlock func()
				err    error
			}
			got := make(chan held)
			go func() {
				u, err := Lock(ctx, path)
				got <- held{u, err}
			}()
			select {
			case h := <-got:
				t.Fatalf("two hold it: %v", h.err)
			default:
			}
			unlock()
			h := <-got
			if h.err != nil {
				t.Fatal(h.err)
			}
			unlock = h.unlock
		})
	}
	unlock()
	if unlock, err = Lock(gone, path); err != nil {
		t.Fatalf("free: %v", err)
	}
	unlock()
	if err := os.Mkdir(path+"2.lock", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(context.Background(), path+"2"); err == nil {
		t.Error("a folder is a lock")
	}
}
