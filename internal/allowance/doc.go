// Package allowance bounds what goes over a link in a month, so that a download costs no more mobile data than its user
// agreed to.
//
// An account is what is counted together: a link, or all links of a kind. What it has spent is kept in a file, in leases: a
// process first notes 1 MiB as spent, then uses it, and gives back what is left over when it ends. After a crash unspent
// leases count as spent: the count may be too high by a lease, never too low. Several processes may share the file.
//
// Bytes are counted as they are read and written, with 6 % for the headers of TCP and IP in both directions. What a server
// has sent when the last byte was read still arrives: up to two bandwidth-delay products.
//
// A Book is safe for concurrent use. One goroutine does all file I/O; nothing else waits for the disk but a reader that has
// no lease. The package reads the clock, for the month.
package allowance
