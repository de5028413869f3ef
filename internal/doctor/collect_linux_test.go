package doctor

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n, err := within(time.Second, func() (int, error) { return 7, nil }); n != 7 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		mine := errors.New("mine")
		if _, err := within(time.Second, func() (int, error) { return 0, mine }); !errors.Is(err, mine) {
			t.Errorf("%v", err)
		}
		if _, err := within(time.Second, func() (int, error) { panic("oops") }); err == nil || !strings.Contains(err.Error(), "oops") {
			t.Errorf("%v after a panic", err)
		}
		hang := make(chan int)
		defer close(hang)
		if _, err := within(time.Second, func() (int, error) { return <-hang, nil }); err == nil || !strings.Contains(err.Error(), "1s") {
			t.Errorf("%v of one that hangs", err)
		}
	})
}
