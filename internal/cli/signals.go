package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errKilled says that the user did not want to wait for the end of the transfers.
var errKilled = errors.New("ended by a second signal; running transfers were cut off")

// untilSignaled runs f and cancels its context at the first SIGTERM or SIGINT, at which f finishes its work and returns. At the
// second it returns errKilled at once: f may still run, so the process must end. A signal within echo of the first does not
// count as a second one: timeout(1) sends each signal to the process and to its group.
func untilSignaled(ctx context.Context, echo time.Duration, draining func(os.Signal), f func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		return err
	case s := <-signals:
		draining(s)
		cancel()
	}
	since := time.Now()
	for {
		select {
		case err := <-done:
			return err
		case <-signals:
			if time.Since(since) >= echo {
				return errKilled
			}
		}
	}
}
