package daemon

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets more tests run at a time than there are processors, since they wait for paced bytes most of the time,
// and fails if a goroutine of the product outlives all of them.
func TestMain(m *testing.M) {
	if proxy := os.Getenv("TRIBUTARY_TEST_ASK"); proxy != "" {
		os.Exit(askAs(proxy))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	end := time.Now().Add(20 * time.Second) // a busy machine
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
