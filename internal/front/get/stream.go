package get

import (
	"hash"
	"io"
)

// stream is an output that keeps nothing: standard output, a pipe or a device.
type stream struct {
	w        io.Writer
	close    io.Closer // nil if it stays open
	n        int64
	checksum *Checksum
	sum      hash.Hash
}

func newStream(w io.Writer, c *Checksum) *stream { return &stream{w: w, checksum: c, sum: c.start()} }

// have implements output.
func (s *stream) have() (int64, *version) { return s.n, nil }

// begin implements output. It is not called after the first byte: without a version, nothing is resumed.
func (s *stream) begin(version) error { return nil }

// Write implements io.Writer.
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n += int64(n)
	if s.sum != nil {
		s.sum.Write(b[:n])
	}
	if err != nil {
		return n, fileError(err, "the output")
	}
	return n, nil
}

// complete implements output.
func (s *stream) complete() (string, error) {
	if err := s.end(); err != nil {
		return "", fileError(err, "the output")
	}
	sum, err := s.checksum.verify(s.sum)
	if err != nil {
		return sum, &Error{Kind: Mismatch, Err: err, Next: "do not use the output; check the source of the checksum"}
	}
	return sum, nil
}

// abandon implements output.
func (s *stream) abandon() string {
	_ = s.end()
	return ""
}

func (s *stream) end() error {
	if s.close == nil {
		return nil
	}
	err := s.close.Close()
	s.close = nil
	return err
}
