package proxy

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// wishField is the request field by which a program sets the goal or the deadline of one request: "goal=NAME",
// "within=SECONDS" or "bitrate=BITS" (per second). Scripts of web pages cannot set fields whose names begin with Proxy-
// (Fetch standard section 2.2.2), so that no page spends its reader's data or battery. The proxy does not forward it,
// like Proxy-Authorization.
const wishField = "Proxy-Tributary"

// Limits on what may be asked for.
const (
	mostWithin  = 30 * 24 * time.Hour
	mostBitrate = 1e12
)

// within returns a context whose requests have a deadline.
func within(ctx context.Context, d policy.Deadline) context.Context {
	return transport.With(ctx, func(o *transport.Options) { o.Links.Deadline = &d })
}

// wish returns the context of a request with the goal or deadline that its field asks for.
func wish(ctx context.Context, h http.Header) (context.Context, *failure) {
	lines := h[wishField]
	if len(lines) == 0 {
		return ctx, nil
	}
	name, value, _ := strings.Cut(strings.TrimSpace(lines[0]), "=")
	if len(lines) == 1 {
		switch name {
		case "goal":
			if slices.Contains(schedule.Goals(), value) {
				return transport.With(ctx, func(o *transport.Options) { o.Links.Goal = value }), nil
			}
		case "within":
			if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 && s <= mostWithin.Seconds() {
				return within(ctx, policy.Deadline{Within: time.Duration(s * float64(time.Second))}), nil
			}
		case "bitrate":
			if bits, err := strconv.ParseFloat(value, 64); err == nil && bits >= 1 && bits <= mostBitrate {
				return within(ctx, policy.Deadline{Bitrate: bits / 8, Startup: transport.PlayerStartup}), nil
			}
		}
	}
	return ctx, badRequest("The field " + wishField + " is not understood. Use one of goal=" +
		strings.Join(schedule.Goals(), ", goal=") +
		", within=SECONDS, bitrate=BITS_PER_SECOND.")
}
