//go:build !android && !phone

package privilege

// networkGroups are those that sockets take: none.
var networkGroups []int
