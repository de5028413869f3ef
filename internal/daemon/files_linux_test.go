package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenFiles(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		limit uint64
		want  bool
	}{{wantedFiles - 1, true}, {wantedFiles, false}} {
		if was.Max < c.limit {
			t.Skipf("the limit here is %d", was.Max)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: c.limit, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		checkFiles(slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "LimitNOFILE="); got != c.want {
			t.Errorf("R190 limit %d: %s", c.limit, &log)
		}
	}
}
