package systemtest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain runs more tests in parallel than there are processors, since they wait for paced bytes most of the time. It fails if a
// goroutine of the product outlives all of them.
func TestMain(m *testing.M) {
	if proxy := os.Getenv("TRIBUTARY_TEST_ASK"); proxy != "" {
		os.Exit(askAs(proxy))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	end := time.Now().Add(20 * time.Second) // long enough for a busy machine
	tick := time.NewTicker(time.Millisecond)
	left := running("")
	for len(left) > 0 && time.Now().Before(end) {
		<-tick.C
		left = running("")
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines are left:\n%s\n", len(left), strings.Join(left, "\n\n"))
		code = 1
	}
	os.Exit(code)
}
