package engine

import (
	"sync"
	"time"
)

// Bytes are counted in slices of time; the rate is that of the last full ones.
const (
	meterSlice  = 250 * time.Millisecond
	meterSlices = 8
)

// meter measures the rate of a link over two seconds, all transfers together. Times are those of fleet.clock. Safe for
// concurrent use.
type meter struct {
	mu    sync.Mutex
	slice [meterSlices + 1]int64 // number of the time slice that is counted there
	bytes [meterSlices + 1]int64
}

func (m *meter) add(at, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := at / int64(meterSlice)
	i := k % int64(len(m.slice))
	if m.slice[i] != k {
		m.slice[i], m.bytes[i] = k, 0
	}
	m.bytes[i] += n
}

// rate returns bytes per second.
func (m *meter) rate(at int64) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, sum := at/int64(meterSlice), int64(0)
	for i := range m.slice {
		if m.slice[i] < k && m.slice[i] >= k-meterSlices {
			sum += m.bytes[i]
		}
	}
	return float64(sum) / (meterSlices * meterSlice).Seconds()
}
