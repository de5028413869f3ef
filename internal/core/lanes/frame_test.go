package lanes

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzDecode(f *testing.F) {
	f.Add(Frame{Kind: Data, Stream: 1, Value: 2, Data: []byte("abc")}.Append(nil))
	f.Add(Frame{Kind: Open, Stream: 1, Value: 1 << 20, Data: []byte("example.com:443")}.Append(nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, n, err := Decode(b)
		switch {
		case err != nil && !errors.Is(err, ErrProtocol), n > len(b):
			t.Fatal(n, err)
		case err == nil && n > 0 && !bytes.Equal(fr.Append(nil), b[:n]):
			t.Fatalf("%x is read as %+v", b[:n], fr)
		}
	})
}

// FuzzReceive: whatever a client sends, the server neither panics nor holds more than it granted.
func FuzzReceive(f *testing.F) {
	seed := Frame{Kind: Open, Stream: 1, Value: 1 << 20, Data: []byte("a:1")}.Append(nil)
	seed = Frame{Kind: Data, Stream: 1, Value: 5, Data: []byte("later")}.Append(seed)
	seed = Frame{Kind: Data, Stream: 1, Value: 0, Data: []byte("sooner")}.Append(seed)
	f.Add(Frame{Kind: Fin, Stream: 1, Value: 10}.Append(seed))
	f.Add(Frame{Kind: Ack, Stream: 7, Value: 1}.Append(seed))
	f.Fuzz(func(t *testing.T, b []byte) {
		now := start
		m := New(Config{Budget: 1 << 20, MaxStreams: 4})
		m.AddLane(now, 7)
		for len(b) > 0 {
			fr, n, err := Decode(b)
			if err != nil || n == 0 || m.Receive(now, 7, fr) != nil {
				return
			}
			b = b[n:]
			if m.Held() > 4*leastWindow {
				t.Fatal(m.Held())
			}
			m.Next(now, 7, nil)
		}
	})
}
