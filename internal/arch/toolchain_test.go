package arch

import (
	"encoding/json"
	"go/version"
	"os/exec"
	"testing"
)

// TestToolchainIsNamed: the go line allows every patch release, also those with known faults in net/http or crypto/tls.
func TestToolchainIsNamed(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct{ Go, Toolchain string }
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if version.Compare(mod.Toolchain, "go"+mod.Go) <= 0 {
		t.Errorf("go.mod: go %s, toolchain %q: name the patch release that builds it", mod.Go, mod.Toolchain)
	}
}
