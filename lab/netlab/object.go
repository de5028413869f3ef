package netlab

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Object is a file that the origin serves.
type Object struct {
	URL    string
	Size   Bytes
	SHA256 string // in hex
}

// objectTime is the modification time of all objects: nginx makes ETags from time and size, so they are the same in
// every run. The time is old enough for Last-Modified to count as a strong validator (RFC 9110 section 8.8.2.2).
var objectTime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Content returns the bytes of the object of the given size: pseudo-random, and the same in every run.
func Content(size Bytes) io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(size))
	return io.LimitReader(rand.NewChaCha8(seed), int64(size))
}

// writeObject writes the object of the given size into dir, under the size's name.
func writeObject(dir string, size Bytes) (Object, error) {
	path := filepath.Join(dir, size.String())
	f, err := os.Create(path)
	if err != nil {
		return Object{}, fmt.Errorf("object %s: %w", size, err)
	}
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	_, err = io.Copy(w, Content(size))
	if err == nil {
		err = w.Flush()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chtimes(path, objectTime, objectTime)
	}
	if err != nil {
		return Object{}, fmt.Errorf("object %s: %w", size, err)
	}
	return Object{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}
