package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestPlainLog(t *testing.T) {
	var out bytes.Buffer
	log := newLog(&out, true, slog.LevelInfo).With("a", 1)
	log.Debug("hidden")
	log.Warn("it has reached its data limit", "link", "eth9")
	log.WithGroup("g").Info("ready", "error", errors.New("x\ny"))
	want := "tributary: warning: it has reached its data limit (a 1, link eth9)\ntributary: ready (a 1, error x\\ny)\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	newLog(&out, false, slog.LevelWarn).Warn("it is full", "link", "eth9")
	if got := out.String(); !strings.Contains(got, `level=WARN msg="it is full" link=eth9`) {
		t.Errorf("%q", got)
	}
}

// TestCarried: the last line of run says what each link carried, and why tunnels failed, since clients do not.
func TestCarried(t *testing.T) {
	c := carried{of: map[string]int64{}}
	if got := c.String(); !strings.HasPrefix(got, "the proxy carried nothing, and no connection without it was seen") {
		t.Error(got)
	}
	for range 2 {
		c.refuse("nx.test:443", "The host name could not be resolved.")
	}
	if got, want := c.String(), "the proxy carried nothing; failed: nx.test:443 (The host name could not be resolved)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.past = []string{"/usr/bin/svn"}
	if got := c.String(); !strings.Contains(got, "; without the proxy: svn (over one link") {
		t.Error(got)
	}
	c.past = nil
	c.add("wlan0", 2_000_000)
	if got, want := c.String(), "wlan0 2.0 MB; failed: nx.test:443 (The host name could not be resolved)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
