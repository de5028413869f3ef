package engine

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	var m meter
	at := int64(time.Hour)
	if r := m.rate(at); r != 0 {
		t.Errorf("%v without a byte", r)
	}
	for range 400 { // 1 MB/s for four seconds
		m.add(at, 10_000)
		at += int64(10 * time.Millisecond)
	}
	if r := m.rate(at); r < 0.95e6 || r > 1.05e6 {
		t.Errorf("%v, want 1 MB/s", r)
	}
	if r := m.rate(at + int64(time.Second)); r < 0.45e6 || r > 0.55e6 {
		t.Errorf("%v a second after the last byte, want half", r)
	}
	if r := m.rate(at + int64(3*time.Second)); r != 0 {
		t.Errorf("%v three seconds after the last byte", r)
	}
	m.add(at+int64(time.Hour), 500_000)
	if r := m.rate(at + int64(time.Hour+time.Second)); r != 250_000 {
		t.Errorf("%v of half a megabyte in two seconds", r)
	}
}
