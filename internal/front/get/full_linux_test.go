package get

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

func TestFullDisk(t *testing.T) {
	t.Run("a device", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		_, err := r.get(t.Context(), s.URL(), Options{Output: "/dev/full"})
		r.fails(err, File, "the disk is full")
	})
	t.Run("a file system", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
		r := newRig(t, toNodes(s), nil)
		mount := func(flags uintptr, size string) error {
			return unix.Mount("tmpfs", r.dir, "tmpfs", flags, "size="+size)
		}
		if err := mount(0, "2m"); err != nil {
			t.Skipf("no file system can be mounted: %v (run it as root)", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(r.dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		m := NewMeter()
		var filling sync.WaitGroup
		filling.Go(func() { // another program takes the space
			for _, have, _ := m.Now(); have < 100_000 && t.Context().Err() == nil; _, have, _ = m.Now() {
				runtime.Gosched()
			}
			r.write("other", make([]byte, 3<<19))
		})
		g := &Getter{Transport: r.transport, Options: Options{Dir: r.dir, Partial: r.store()}}
		_, err := g.Get(t.Context(), s.URL(), m)
		filling.Wait()
		r.fails(err, File, "the disk is full: free some space", "--resume")
		st, err := os.Stat(r.path("object.part"))
		if err != nil || st.Size() == 0 {
			t.Fatalf("%v, %v", st, err)
		}
		if err := errors.Join(os.Remove(r.path("other")), mount(unix.MS_REMOUNT, "8m")); err != nil {
			t.Fatal(err)
		}
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		if err != nil || res.Resumed != st.Size() {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
	t.Run("seen before", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(4*paced))
		r := newRig(t, toNodes(s), nil)
		if err := unix.Mount("tmpfs", r.dir, "tmpfs", 0, "size=512k"); err != nil {
			t.Skipf("no file system can be mounted: %v (run it as root)", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(r.dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, File, "the file takes 1.1 MB, and 0.5 MB are free", "free some space")
		r.holds()
	})
	t.Run("a read-only file system", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		if err := unix.Mount("tmpfs", r.dir, "tmpfs", unix.MS_RDONLY, ""); err != nil {
			t.Skipf("no file system can be mounted: %v (run it as root)", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(r.dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, Permission, "-d or -o")
	})
}
