package get

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/origin/origintest"
)

func TestFullDisk(t *testing.T) {
	t.Run("a device", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid})
		r := newRig(t, toNodes(s), nil)
		_, err := r.get(t.Context(), s.URL(), Options{Output: "/dev/full"})
		r.fails(err, File, "the disk is full")
	})
	t.Run("a file system", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(4*paced))
		r := newRig(t, toNodes(s), nil)
		mount := func(flags uintptr, size string) error {
			return unix.Mount("tmpfs", r.dir, "tmpfs", flags, "size="+size)
		}
		if err := mount(0, "512k"); err != nil {
			t.Skipf("no file system can be mounted: %v (run it as root)", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(r.dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		_, err := r.get(t.Context(), s.URL(), Options{})
		r.fails(err, File, "the disk is full: free some space", "--resume")
		st, err := os.Stat(r.path("object.part"))
		if err != nil || st.Size() == 0 {
			t.Fatalf("%v, %v", st, err)
		}
		if err := mount(unix.MS_REMOUNT, "4m"); err != nil {
			t.Fatal(err)
		}
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true})
		if err != nil || res.Resumed != st.Size() {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
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
