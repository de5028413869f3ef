//go:build !android && !phone

package main

// prepare does nothing: the runtime supports this system.
func prepare() {}
