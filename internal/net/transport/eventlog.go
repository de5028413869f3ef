package transport

import (
	"context"
	"log/slog"

	"github.com/tributary-http/tributary/internal/net/engine"
)

// eventLog logs changes in the state of links; transfers log their own summaries.
type eventLog struct{ log *slog.Logger }

// Observe implements engine.Observer.
func (j eventLog) Observe(e engine.Event) {
	switch e.Kind {
	case engine.EventLinkState:
		level := slog.LevelInfo
		if e.State == "suspect" || e.Reason == "silence" && e.State == "up" {
			level = slog.LevelDebug // LTE often falls silent
		}
		j.log.Log(context.Background(), level, "link state", "link", e.Link, "state", e.State, "reason", e.Reason)
	case engine.EventOriginState:
		j.log.Debug("link state for an origin", "link", e.Link, "state", e.State, "reason", e.Reason,
			"origin", e.Origin)
	case engine.EventHedge:
		j.log.Debug("bytes taken over", "link", e.Link, "transfer", e.Transfer)
	}
}
