package cli

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain asks for a signal before any test does. The first request starts the goroutine of the Go runtime that serves all of
// them; in a bubble of testing/synctest, it would get channels of the bubble and the process would end with the next request.
func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	signal.Stop(signals)
	os.Exit(m.Run())
}
