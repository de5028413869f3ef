// Package allowance limits the traffic of a link per month and per day, so that a download costs no more mobile data
// than its user agreed to.
//
// An account covers the links that are counted together: one link, or all links of a kind. A file records how much it
// spent on each of the last days, so that a month may begin on any day. Bytes are taken in leases: a process first
// records up to 1 MiB as spent, then uses it, and returns the rest when it ends. After a crash, unspent leases count as
// spent, so the count may be too high by one lease, but never too low. Several processes may share the file.
//
// Bytes are counted as they are read and written, with 6 % for the headers of TCP and IP in both directions. That is
// too late near the limit: data in receive buffers has already arrived, and servers may fill every window that was
// advertised to them. So stricter rules apply to the last 64 MiB of an account, plus twice the bytes that its
// connections may receive: the receive buffer of every connection is fixed, no connection reads more than remains after
// subtracting all these buffers, and a new one gets a smaller buffer before it connects. Used and reserved bytes
// together never exceed the limit. A closed connection is charged for all bytes it received, read or not, and for the
// window of a peer that may still be sending.
//
// The limit is exceeded by at most the first window of a connection, 64 KiB, if the server speaks first. Packets that
// the network loses and retransmits are not visible here.
//
// Far from the limit, the kernel sizes the buffers, and their sizes are read once per lease.
//
// Accounts are safe for concurrent use. One goroutine does all file I/O; only a reader without a lease waits for the
// disk. The package reads the clock to determine the day.
//
// Reasons: docs/decisions/data-limits.md.
package allowance
