// Package cli is the command line of tributary: one file per command, which turns flags into a config.Config and calls
// what does the work. It decides nothing else.
//
// All text for people goes through one writer (printable.go), which keeps what others say from giving orders to a terminal.
//
// It owns the exit codes (exit.go), what happens on SIGTERM and SIGINT (signals.go), and the wording of the errors that
// a user sees last: what is wrong, and what to do next. Flags have the names of the keys in the configuration file, with
// dashes; underscores are taken too.
package cli
