// Package arch holds no code: its test keeps the shape that DESIGN.md section 3 gives the project. It reads the source
// of every package and fails when a package imports what it must not know, when the pure core reads a clock, and when
// names, files or comments leave the rules. Every rule is listed with its reason.
package arch
