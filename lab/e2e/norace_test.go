//go:build !race

package e2e

// buildFlags are those of the program under test.
var buildFlags []string
