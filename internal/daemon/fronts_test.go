package daemon

import (
	"testing"
	"time"
)

func TestShortServer(t *testing.T) {
	s := shortServer(nil)
	for name, limit := range map[string]time.Duration{
		"head": s.ReadHeaderTimeout, "request": s.ReadTimeout, "answer": s.WriteTimeout, "silence": s.IdleTimeout,
	} {
		t.Run("R190 time for "+name, func(t *testing.T) {
			if limit <= 0 || limit > 30*time.Second {
				t.Error(limit)
			}
		})
	}
}
