// Package statefile keeps the small files that outlast a process, in the user's state folder. A file is replaced as a whole, so
// that a crash leaves the old or the new one. A lock file beside it lets one process change it at a time.
package statefile
