package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// newLog returns a log that writes to w: sentences for people on a terminal, key=value for a journal.
func newLog(w io.Writer, terminal bool, level slog.Leveler) *slog.Logger {
	if terminal {
		return slog.New(&plainLog{w: w, level: level})
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// plainLog writes a line for each message, as errors of commands look: "tributary: warning: MESSAGE (link wlan0)".
type plainLog struct {
	w     io.Writer
	level slog.Leveler
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (p *plainLog) Enabled(_ context.Context, l slog.Level) bool { return l >= p.level.Level() }

// WithAttrs implements slog.Handler.
func (p *plainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &plainLog{p.w, p.level, slices.Concat(p.attrs, attrs)}
}

// WithGroup implements slog.Handler. Groups do not help people.
func (p *plainLog) WithGroup(string) slog.Handler { return p }

// Handle implements slog.Handler.
func (p *plainLog) Handle(_ context.Context, r slog.Record) error {
	var about []string
	add := func(a slog.Attr) bool {
		if v := a.Value.Resolve().String(); v != "" {
			about = append(about, a.Key+" "+strings.ReplaceAll(v, "\n", `\n`))
		}
		return true
	}
	for _, a := range p.attrs {
		add(a)
	}
	r.Attrs(add)
	text := "tributary: "
	switch {
	case r.Level >= slog.LevelError:
		text += "error: "
	case r.Level >= slog.LevelWarn:
		text += "warning: "
	case r.Level < slog.LevelInfo:
		text += "debug: "
	}
	text += r.Message
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	_, err := fmt.Fprintln(p.w, text)
	return err
}
