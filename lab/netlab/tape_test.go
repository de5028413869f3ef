package netlab

import (
	"testing"
	"time"
)

// tcp4 returns an IPv4 packet of TCP with the given payload in bytes and 12 bytes of options.
func tcp4(payload int) []byte {
	b := make([]byte, 20+32+payload)
	b[0], b[9], b[20+12] = 0x45, protocolTCP, 8<<4
	return b
}

func TestPayload(t *testing.T) {
	tcp6 := make([]byte, 40+20+7)
	tcp6[0], tcp6[6], tcp6[40+12] = 0x60, protocolTCP, 5<<4
	udp := tcp4(100)
	udp[9] = 17
	for name, c := range map[string]struct {
		packet []byte
		want   int
	}{
		"full": {tcp4(1448), 1448}, "acknowledgement": {tcp4(0), 0}, "IPv6": {tcp6, 7},
		"udp": {udp, 0}, "short": {tcp4(0)[:30], 0}, "empty": {nil, 0},
	} {
		if got := payload(c.packet); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestTape(t *testing.T) {
	const ms = time.Millisecond
	r := recorder{began: 100 * ms}
	r.note(101*ms, tcp4(0)) // an acknowledgement is not data
	r.note(102*ms, tcp4(1000))
	r.note(104*ms, tcp4(500))
	r.note(117*ms, tcp4(1448))
	r.note(119*ms, tcp4(10))
	start := time.Unix(0, 0)
	tape := r.tape(start)
	if got, want := tape.Bytes, int64(5*52+1000+500+1448+10); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	if !tape.First.Equal(start.Add(102*ms)) || !tape.Last.Equal(start.Add(117*ms)) {
		t.Errorf("data from %v to %v", tape.First, tape.Last)
	}
	for at, want := range map[time.Duration]int64{100: 0, 102: 600, 105: 1500, 115: 1500, 120: 2958, 1000: 2958, 50: 0} {
		if got := tape.Sum(start.Add(at * ms)); got != want {
			t.Errorf("by %d ms %d bytes, want %d", at, got, want)
		}
	}
	if tape.Total() != 2958 {
		t.Errorf("total %d", tape.Total())
	}
	if empty := (&recorder{}).tape(start); !empty.Last.IsZero() || empty.Total() != 0 {
		t.Errorf("%+v", empty)
	}
}
