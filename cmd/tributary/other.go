//go:build !android && !phone

package main

// prepare does nothing: the runtime knows this system.
func prepare() {}
