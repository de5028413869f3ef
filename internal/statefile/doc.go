// Package statefile keeps the small files that outlast a process, in the user's state folder. A file is replaced as a whole, so
// that a crash leaves the old or the new one, and it is one process's at a time to change, by a lock on a file beside it.
package statefile
