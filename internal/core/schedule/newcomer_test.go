package schedule_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestNewcomer adds the scheduler shown in docs/SCHEDULERS.md, which is a file and a line in the registry, and runs the tests of
// every scheduler on it, in a separate build.
func TestNewcomer(t *testing.T) {
	if testing.Short() || runtime.GOOS == "android" || os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("builds the package, with the Go tool")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "SCHEDULERS.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of Go, want the file and the line of the registry", len(blocks))
	}
	file, line := blocks[0][1], blocks[1][1]
	if n := strings.Count(file, "\n"); n > 40 {
		t.Errorf("the example has %d lines", n)
	}
	registry, err := os.ReadFile("registry.go")
	if err != nil {
		t.Fatal(err)
	}
	first := "\t{\"alg3\","
	if strings.Count(string(registry), first) != 1 {
		t.Fatalf("the registry does not begin with %s", first)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, content := range map[string]string{
		"newcomer.go": file, "registry.go": strings.Replace(string(registry), first, line+first, 1),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, name)] = path
	}
	overlay := filepath.Join(dir, "overlay.json")
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, content, 0o600); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\{"([^"]+)"`).FindStringSubmatch(line)[1]
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-v", "-short",
		"-run", "^(TestConformance|TestRegistry)$", ".")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestConformance/"+name+"/never_stuck ") {
		t.Errorf("%v\n%s", err, out)
	}
}
