package link

import "context"

// apartKey is the context key of [Apart].
type apartKey struct{}

// Apart returns a context for making a connection that carries one response, perhaps without the rest ever being read:
// its first window is small, and connections that others may need are left alone.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, apartKey{}, true) }

// IsApart reports whether ctx is from [Apart].
func IsApart(ctx context.Context) bool { return ctx.Value(apartKey{}) != nil }
