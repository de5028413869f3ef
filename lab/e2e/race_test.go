//go:build race

package e2e

// buildFlags are the build flags of the program under test.
var buildFlags = []string{"-race"}
