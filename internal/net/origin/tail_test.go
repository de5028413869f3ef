package origin

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http/httptest"
	"testing"
	"testing/iotest"
)

// TestTail: whatever arrives together, a reader gets every byte in order, and none beyond the end of a record.
func TestTail(t *testing.T) {
	for seed := range uint64(300) {
		rng := mrand.New(mrand.NewPCG(seed, 0))
		var stream []byte
		ends := map[int]bool{0: true}
		for range 1 + rng.IntN(20) {
			body := make([]byte, []int{0, 1, rng.IntN(100), rng.IntN(16 << 10), 1<<16 - 1}[rng.IntN(5)])
			_, _ = rand.Read(body)
			stream = append(binary.BigEndian.AppendUint16(append(stream, 23, 3, 3), uint16(len(body))), body...)
			ends[len(stream)] = true
		}
		stream = stream[:len(stream)-rng.IntN(4)]
		var r io.Reader = bytes.NewReader(stream)
		switch rng.IntN(3) {
		case 0:
			r = iotest.OneByteReader(r)
		case 1:
			r = iotest.HalfReader(r)
		}
		c := &tail{Conn: readerConn{Reader: r}}
		var got []byte
		buf := make([]byte, 1+rng.IntN(32<<10))
		for {
			before := len(got)
			n, err := c.Read(buf)
			if got = append(got, buf[:n]...); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for at := before + 1; at < len(got); at++ {
				if ends[at] {
					t.Fatalf("seed %d: bytes %d to %d in one piece, but a record ends at %d", seed, before, len(got), at)
				}
			}
		}
		if !bytes.Equal(got, stream) || !c.cut {
			t.Fatalf("seed %d: %d bytes of %d, cut %v", seed, len(got), len(stream), c.cut)
		}
	}
}

type readerConn struct {
	net.Conn
	io.Reader
}

func (r readerConn) Read(p []byte) (int, error) { return r.Reader.Read(p) }

// TestTailBuffer: the buffer of crypto/tls holds one record, however many have arrived.
func TestTailBuffer(t *testing.T) {
	const size = 4 << 20
	https := httptest.NewTLSServer(nil)
	https.Close()
	roots := x509.NewCertPool()
	roots.AddCert(https.Certificate())
	https.TLS.DynamicRecordSizingDisabled = true
	l, err := tls.Listen("tcp", "127.0.0.1:0", https.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write(make([]byte, size))
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	below := &tail{Conn: nc}
	m := &meter{Conn: below}
	n, err := io.Copy(io.Discard, tls.Client(m, &tls.Config{RootCAs: roots, ServerName: "example.com"}))
	if n != size || err != nil || below.cut {
		t.Fatalf("%d bytes, %v, cut %v", n, err, below.cut)
	}
	if m.most > 20<<10 {
		t.Errorf("crypto/tls has a buffer of %d bytes", m.most)
	}
}

// meter records the most that a Read could have returned.
type meter struct {
	net.Conn
	most int
}

func (m *meter) Read(p []byte) (int, error) {
	m.most = max(m.most, len(p))
	return m.Conn.Read(p)
}
