package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func rulesOf(list []mutation) (all []int) {
	for _, m := range list {
		all = append(all, m.rule)
	}
	return all
}

func TestChoose(t *testing.T) {
	list := []mutation{{rule: 1}, {rule: 2}, {rule: 2}, {rule: 3}, {rule: 4}, {guards: "x"}}
	got, err := choose(list, []string{"R4", "core", "R2"}, false, 0, 1)
	if err != nil || !slices.Equal(rulesOf(got), []int{4, 0, 2, 2}) {
		t.Errorf("%v, %v", rulesOf(got), err)
	}
	for _, bad := range []string{"R9", "4", "R"} {
		if _, err := choose(list, []string{bad}, false, 0, 1); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if got, err := choose(list, nil, true, 0, 1); err != nil || len(got) != len(list) {
		t.Errorf("all: %v, %v", rulesOf(got), err)
	}
	drawn := map[string]bool{}
	for seed := range uint64(20) {
		got, err := choose(list, nil, false, seed, 3)
		again, _ := choose(list, nil, false, seed, 3)
		if err != nil || len(got) != 3 || !slices.Equal(rulesOf(got), rulesOf(again)) {
			t.Errorf("seed %d: %v, %v, %v", seed, rulesOf(got), rulesOf(again), err)
		}
		var key strings.Builder
		for _, m := range got {
			key.WriteString(string(rune('0' + m.rule)))
		}
		drawn[key.String()] = true
	}
	if len(drawn) < 5 {
		t.Errorf("20 seeds draw only %v", drawn)
	}
	if got, err := choose(list, nil, false, 1, 99); err != nil || len(got) != len(list) {
		t.Errorf("more than there are: %v, %v", rulesOf(got), err)
	}
}

// TestTree tries mutations of a small module.
func TestTree(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git, which lists the files")
	}
	from := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module x\n\ngo 1.26\n",
		"x.go":        "package x\n\nfunc Guard(n int) bool { return n > 3 }\n\nfunc Loose() int { return 1 }\n",
		"x_test.go":   "package x\n\nimport \"testing\"\n\nfunc TestGuard(t *testing.T) {\n\tif Guard(3) || Loose() == 0 {\n\t\tt.Error(1)\n\t}\n}\n",
		"ignored.txt": "x", ".gitignore": "ignored.txt\n",
	} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", from).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, err := newTree(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer c.remove()
	if _, err := os.Stat(filepath.Join(c.root, "ignored.txt")); err == nil {
		t.Error("a file that git ignores was copied")
	}
	var said strings.Builder
	c.said = &said
	guard := mutation{rule: 1, file: "x.go", old: "n > 3", dirs: []string{"."}, run: "TestGuard"}
	with := func(text string) mutation { m := guard; m.new = text; return m }
	if err := c.sound(t.Context(), []mutation{guard}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]result{"n > 2": caught, "n > 4": survived, "n >": unbuilt} {
		if got, _, err := c.try(t.Context(), with(text)); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, f := range []string{c.root, from} { // both are unchanged
		if text, err := os.ReadFile(filepath.Join(f, "x.go")); err != nil || !strings.Contains(string(text), "n > 3 }") {
			t.Errorf("%s: %s, %v", f, text, err)
		}
	}
	var out strings.Builder
	if err := report(t.Context(), c, []mutation{with("n > 2"), with("n > 4")}, &out); err == nil ||
		!strings.Contains(out.String(), "SURVIVED") || !strings.Contains(out.String(), "1 of 2 caught") {
		t.Errorf("%s, %v", out.String(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.try(ctx, with("n > 2")); err == nil {
		t.Error("no error after an interruption")
	}
	if err := os.WriteFile(filepath.Join(c.root, "x.go"), []byte("package x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.sound(t.Context(), []mutation{guard}); err == nil {
		t.Error("tests that fail anyway are accepted")
	}
}
