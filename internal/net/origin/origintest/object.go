package origintest

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"time"
)

// epoch is the Date of the answers if an Object sets none. It is fixed, so that heads are the same in every run.
var epoch = time.Date(2026, time.January, 2, 15, 4, 5, 0, time.UTC)

// Object is one version of the resource that the server serves.
type Object struct {
	Size int64
	Seed uint64
	// ETag with its quotes; "" stands for `"v1"`, NoETag for none.
	ETag string
	// Modified is the Last-Modified date; the zero time stands for a day before Date, NoModified for none.
	Modified time.Time
	Date     time.Time // the Date field; zero: a fixed day
	Type     string    // Content-Type; "" stands for application/octet-stream
}

// NoETag, as the ETag of an Object, means that none is sent.
const NoETag = "-"

// NoModified, as the Modified of an Object, means that none is sent.
var NoModified = time.Unix(0, 0)

// Defaults returns the object with its defaults filled in.
func (o Object) Defaults() Object {
	if o.ETag == "" {
		o.ETag = `"v1"`
	}
	if o.Type == "" {
		o.Type = "application/octet-stream"
	}
	if o.Date.IsZero() {
		o.Date = epoch
	}
	if o.Modified.IsZero() {
		o.Modified = o.Date.Add(-24 * time.Hour)
	}
	return o
}

// word returns bytes [8i, 8i+8) of the object: SplitMix64 (Steele, Lea, Flood 2014), which can start at any offset.
func (o Object) word(i uint64) uint64 {
	z := o.Seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ReadAt implements io.ReaderAt.
func (o Object) ReadAt(p []byte, off int64) (int, error) {
	n := int(max(0, min(int64(len(p)), o.Size-off)))
	o.fill(p[:n], off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// fill writes the bytes from off on, even beyond the end of the object: surplus bytes need a value too.
func (o Object) fill(p []byte, off int64) {
	var w [8]byte
	for len(p) > 0 {
		i, skip := uint64(off)/8, int(off%8)
		if skip == 0 && len(p) >= 8 {
			binary.LittleEndian.PutUint64(p, o.word(i))
			p, off = p[8:], off+8
			continue
		}
		binary.LittleEndian.PutUint64(w[:], o.word(i))
		n := copy(p, w[skip:])
		p, off = p[n:], off+int64(n)
	}
}

// Bytes returns the bytes [start, end).
func (o Object) Bytes(start, end int64) []byte {
	p := make([]byte, end-start)
	o.fill(p, start)
	return p
}

// Mismatch returns the offset of the first byte of p that differs from the object, or -1. p begins at off.
func (o Object) Mismatch(p []byte, off int64) int64 {
	var buf [4096]byte
	for len(p) > 0 {
		b := buf[:min(len(p), len(buf))]
		o.fill(b, off)
		for i := range b {
			if p[i] != b[i] || off+int64(i) >= o.Size {
				return off + int64(i)
			}
		}
		p, off = p[len(b):], off+int64(len(b))
	}
	return -1
}

// SHA256 returns the hash of the whole object.
func (o Object) SHA256() [sha256.Size]byte {
	h := sha256.New()
	_, _ = io.Copy(h, io.NewSectionReader(o, 0, o.Size)) // neither end can fail
	return [sha256.Size]byte(h.Sum(nil))
}
