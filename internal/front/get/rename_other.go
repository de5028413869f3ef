//go:build !linux

package get

// renameNew renames a file without replacing another one.
func renameNew(from, to string) error { return renameChecked(from, to) }
