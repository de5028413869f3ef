package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errKilled reports that the user did not want to wait for the end of the transfers.
var errKilled = errors.New("ended by a second signal; running transfers were cut off")

// untilSignaled runs f and cancels its context at the first SIGTERM or SIGINT, so that f finishes its work and returns.
// At the second signal, it returns errKilled immediately. f may still run then, so the process must end. A signal
// within echo after the first does not count as a second one, since timeout(1) sends each signal to the process and to
// its group.
func untilSignaled(ctx context.Context, echo time.Duration, draining func(os.Signal),
	f func(context.Context) error,
) error {
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
