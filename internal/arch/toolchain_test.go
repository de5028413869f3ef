package arch

import (
	"encoding/json"
	"go/version"
	"os/exec"
	"testing"
)

// TestToolchainIsNamed: the go line allows every patch release, including those with known faults in net/http or crypto/tls.
func TestToolchainIsNamed(t *testing.T) {
	read := func(dir string) (mod struct{ Go, Toolchain string }) {
		cmd := exec.Command("go", "mod", "edit", "-json")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &mod); err != nil {
			t.Fatal(err)
		}
		return mod
	}
	product := read("../..")
	if version.Compare(product.Toolchain, "go"+product.Go) <= 0 {
		t.Errorf("go.mod: go %s, toolchain %q: name the patch release that builds it", product.Go, product.Toolchain)
	}
	if lab := read("../../lab"); lab != product {
		t.Errorf("lab/go.mod names %v, go.mod %v", lab, product)
	}
}
