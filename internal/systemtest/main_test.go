package systemtest

import (
	"flag"
	"os"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
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
	os.Exit(RunAll(m))
}
