package sim

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestSeed(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SIM_SEED"))
	if err != nil {
		t.Skip("SIM_SEED is not set: prints the event log of one seed (under SIM_SCHEDULER)")
	}
	s := random(uint64(n))
	if name := os.Getenv("SIM_SCHEDULER"); name != "" {
		s.Scheduler = name
	}
	s.Log = func(at time.Duration, what string) { t.Log(at, what) }
	r, err := Run(s)
	t.Logf("%+v\n%+v %v", s, r, err)
}
