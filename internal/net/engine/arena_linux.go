//go:build linux && !race

package engine

import "golang.org/x/sys/unix"

// mapMemory returns n bytes for blocks, outside of the collected heap: blocks are most of the memory of a busy process,
// and the collector lets a heap grow to twice its live size.
func mapMemory(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return make([]byte, n)
	}
	return b
}

// unmapMemory gives memory back to the system.
func unmapMemory(b []byte) { _ = unix.Munmap(b) }
