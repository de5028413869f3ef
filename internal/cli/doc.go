// Package cli is the command line of tributary: one file per command, which turns flags into a config.Config and calls
// the package that does the work. It makes no other decisions.
//
// All text for people goes through one writer (printable.go), which keeps text from other parties from controlling a
// terminal.
//
// The package also defines the exit codes (exit.go), the handling of SIGTERM and SIGINT (signals.go), and the wording
// of errors: the problem, and what to do next. Flags have the same names as the keys in the configuration file, with
// dashes; underscores are accepted too.
package cli
