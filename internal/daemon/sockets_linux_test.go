package daemon

import (
	"net"
	"strings"
	"testing"
)

func TestSockets(t *testing.T) {
	open := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	a, b := open(), open()
	s := sockets{a, b}
	l, err := s.listen(b.Addr().String())
	if l != b || err != nil {
		t.Errorf("%v, %v: not the one that is open", l, err)
	}
	if err := s.left(); err == nil || !strings.Contains(err.Error(), a.Addr().String()) {
		t.Errorf("one is left: %v", err)
	}
	if l, err := s.listen(a.Addr().String()); l != a || err != nil || s.left() != nil {
		t.Errorf("%v, %v, %v", l, err, s.left())
	}
	l, err = s.listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
