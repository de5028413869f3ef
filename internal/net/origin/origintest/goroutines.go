package origintest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Stacks returns the stacks of all goroutines.
func Stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// Running returns the stacks of goroutines that run code of the product and contain one of the names: the path of a
// package below internal, with or without a function. "" stands for every package.
func Running(names ...string) []string {
	var all []string
	for g := range strings.SplitSeq(Stacks(), "\n\n") {
		if strings.Contains(g, "_test.go") || strings.Contains(g, "/origintest") {
			continue
		}
		if slices.ContainsFunc(names, func(n string) bool {
			return strings.Contains(g, "tributary-http/tributary/internal/"+n)
		}) {
			all = append(all, g)
		}
	}
	return all
}

// RunAll runs the tests of a package and returns the code to exit with. It fails if a goroutine of the product outlives
// all of them.
func RunAll(m *testing.M) int {
	code := m.Run()
	end := time.Now().Add(20 * time.Second) // long enough for a busy machine
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	left := Running("")
	for len(left) > 0 && time.Now().Before(end) {
		<-tick.C
		left = Running("")
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines are left:\n%s\n", len(left), strings.Join(left, "\n\n"))
		code = 1
	}
	return code
}
