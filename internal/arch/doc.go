// Package arch has only tests. They keep the shape that docs/ARCHITECTURE.md gives the project. They read the source
// of every package and fail when a package imports what it must not know, when the pure core reads a clock, and when
// names, files or comments break the rules. Every rule is listed with its reason.
package arch
