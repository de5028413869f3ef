package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestLibrary: the Go program in docs/guides/go.md, verbatim, in its own module, downloads over both links.
func TestLibrary(t *testing.T) {
	t.Parallel()
	netlab.Require(t)
	program := buildGuide(t) // before the rig, whose time is limited
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(15_000_000)
	before := map[string]int64{}
	for _, l := range r.lab.LinkNames() {
		_, before[l] = r.carried(l)
	}
	r.isObject(r.ok(r.client(program, append([]string{r.nginx.NamedURL(o)}, r.lab.LinkNames()...)...)).body, o)
	for _, l := range r.lab.LinkNames() {
		_, n := r.carried(l)
		if n -= before[l]; n < int64(o.Size)/part {
			t.Errorf("%s carried %d of %d bytes", l, n, o.Size)
		}
	}
	if c := r.client(program, r.nginx.NamedURL(o)+"/none-such", "none-such"); c.code != 1 || !strings.Contains(c.said, "no usable link") {
		t.Errorf("without a link: exit code %d, %q", c.code, c.said)
	}
}

// buildGuide builds the guide's program in a fresh module that replaces Tributary with this checkout.
func buildGuide(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(read(t, root, "docs/guides/go.md"), "\n```go\n")
	code, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatal("the guide has no program")
	}
	const module = "github.com/tributary-http/tributary"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": code,
		"go.mod":  "module example.org/download\n\ngo 1.26.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n",
		"go.sum":  read(t, root, "go.sum"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "download", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "download")
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
