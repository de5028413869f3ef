// Package arch contains only tests. They enforce the structure that docs/ARCHITECTURE.md describes: they read the
// source of every package, and fail if a package imports one that it must not depend on, if the pure core reads a
// clock, or if names, files or comments break the rules. Every rule is listed with its reason.
//
// Reasons: docs/decisions/clocks.md.
package arch
