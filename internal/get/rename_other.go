//go:build !linux

package get

// renameNew renames a file and replaces none.
func renameNew(from, to string) error { return renameChecked(from, to) }
