package daemon

import (
	"os"
	"testing"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

func TestMain(m *testing.M) { os.Exit(origintest.RunAll(m)) }
