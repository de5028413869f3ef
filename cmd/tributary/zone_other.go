//go:build !android

package main

// localTime leaves the time zone to the runtime.
func localTime() {}
