// Package statefile keeps small files in the user's state folder between runs. A file is always replaced as a whole, so
// that a crash leaves either the old or the new one. A lock file next to it lets one process at a time change it.
package statefile
