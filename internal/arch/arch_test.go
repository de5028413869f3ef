package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tributary-http/tributary"

// file is a parsed Go file.
type file struct {
	name  string // relative to the module
	lines int
	set   *token.FileSet
	*ast.File
}

func (f file) test() bool { return strings.HasSuffix(f.name, "_test.go") }

// pkg contains a folder's Go files, including those for other systems.
type pkg struct {
	path  string // relative to the module
	files []file
}

// packages parses all packages of the module in a folder.
func packages(t *testing.T, root string) []pkg {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-e", "-json=Dir,ImportPath", "./...")
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct{ Dir, ImportPath string }
		if err := d.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, parse(t, strings.TrimPrefix(listed.ImportPath, module+"/"), listed.Dir))
	}
	if len(all) == 0 {
		t.Fatalf("go list found no package in %s", root)
	}
	return all
}

func parse(t *testing.T, name, dir string) pkg {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := pkg{path: name}
	for _, s := range sources {
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, s, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, file{path.Join(name, filepath.Base(s)), bytes.Count(text, []byte("\n")), set, f})
	}
	return p
}

// within reports whether path is one of the roots or a folder below one.
func within(p string, roots ...string) bool {
	for _, r := range roots {
		if p == r || strings.HasPrefix(p, r+"/") {
			return true
		}
	}
	return false
}

// ruleOf returns the rules of the package and of the folders above it as one, and the folder in which packages import
// each other.
func ruleOf(p string) (all rule, root string, known bool) {
	below := p
	for at := p; at != "."; below, at = at, path.Dir(at) {
		r, ok := rules[at]
		if !ok {
			continue
		}
		switch {
		case root != "":
		case r.apart:
			root = below
		default:
			root = at
		}
		all.imports = append(all.imports, r.imports...)
		all.pure, all.tests, known = all.pure || r.pure, all.tests || r.tests, true
	}
	return all, root, known
}

// violations returns the violations of one package, one per line.
func violations(p pkg) (bad []string) {
	complain := func(f file, at token.Pos, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("%s:%d: ", f.name, f.set.Position(at).Line)+fmt.Sprintf(format, args...))
	}
	r, root, known := ruleOf(p.path)
	if !known {
		bad = append(bad, p.path+": no rule: give it a line in docs/ARCHITECTURE.md and in rules_test.go")
	}
	if slices.Contains(vague, path.Base(p.path)) {
		bad = append(bad, p.path+": a package is named after what it provides; this name takes in everything")
	}

	comments := 0
	for _, f := range p.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				for _, w := range words(id.Name) {
					if instead, ok := retired[w]; ok {
						complain(f, id.Pos(), "%s: %q is retired, say %s (docs/ARCHITECTURE.md, Words)", id.Name, w, instead)
					}
				}
			}
			return true
		})
		if f.lines > maxLines {
			complain(f, f.Package, "%d lines, more than %d: one concept per file", f.lines, maxLines)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				complain(f, fn.Pos(), "func init: what runs at start is called by main, so that it can be read and tested")
			}
		}
		if f.test() && !r.tests {
			continue // most tests may use everything
		}
		if f.Doc != nil {
			comments++
		}
		imports := map[string]string{} // local name -> path
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				complain(f, spec.Pos(), "%v", err)
				continue
			}
			imports[localName(spec, imported)] = imported
			if internal, ok := strings.CutPrefix(imported, module+"/"); ok && known &&
				!within(internal, r.imports...) && !within(internal, root) {
				complain(f, spec.Pos(), "%s must not know %s: dependencies point one way (docs/ARCHITECTURE.md)", p.path, internal)
			}
			for _, rs := range reserved {
				if within(imported, rs.path) && !within(p.path, rs.only...) {
					complain(f, spec.Pos(), "only %s may import %s: %s", strings.Join(rs.only, ", "), imported, rs.reason)
				}
			}
			if r.pure && !slices.Contains(pureExcepted, imported) && within(imported, pureImports...) {
				complain(f, spec.Pos(), "PURE package imports %s: %s", imported, pureReason)
			}
			if spec.Name != nil && spec.Name.Name == "." {
				complain(f, spec.Pos(), "dot import: it hides from readers, and from this test, where a name comes from")
			}
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			from, name, ok := selected(n)
			if !ok {
				return true
			}
			switch from = imports[from]; {
			case r.pure && slices.Contains(pureCalls[from], name):
				complain(f, n.Pos(), "PURE package uses %s.%s: %s", from, name, pureReason)
			case r.pure && from == "math/rand/v2" && ast.IsExported(name) && isGlobalRand(name):
				complain(f, n.Pos(), "PURE package uses the global source, rand.%s: the same seed must give the same run", name)
			case from == "net" && slices.Contains(listing, name) && !within(p.path, mayList...):
				complain(f, n.Pos(), "net.%s: only internal/net/link lists interfaces, a phone's app takes its place", name)
			}
			return true
		})
	}
	if comments != 1 && slices.ContainsFunc(p.files, func(f file) bool { return !f.test() }) {
		bad = append(bad, fmt.Sprintf("%s: %d package comments, want exactly 1", p.path, comments))
	}
	return bad
}

// words returns the words of an identifier in lower case, without the plural s.
func words(name string) (all []string) {
	for _, w := range word.FindAllString(name, -1) {
		all = append(all, strings.TrimSuffix(strings.ToLower(w), "s"))
	}
	return all
}

var word = regexp.MustCompile(`[A-Z]+(?:[^A-Za-z]|$)|[A-Z]?[a-z]+|[A-Z]+`)

// selected returns the two parts of x.name.
func selected(n ast.Node) (x, name string, ok bool) {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, ok := s.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	return id.Name, s.Sel.Name, true
}

// isGlobalRand reports whether a name of math/rand/v2 is a function that uses the global source, not a type or a constructor.
func isGlobalRand(name string) bool {
	return !slices.Contains(seeded, name) && !slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, name)
}

// localName returns the file's name for an import.
func localName(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	if base := path.Base(imported); base != "v2" {
		return base
	}
	return path.Base(path.Dir(imported))
}

func TestArchitecture(t *testing.T) {
	all := append(packages(t, "../.."), packages(t, "../../lab")...)
	exists := map[string]bool{}
	for _, p := range all {
		exists[p.path] = true
		t.Run(p.path, func(t *testing.T) {
			for _, v := range violations(p) {
				t.Error(v)
			}
		})
	}
	t.Run("permissions are used", func(t *testing.T) {
		used := map[string]bool{} // "rule import"
		for _, p := range all {
			r, _, _ := ruleOf(p.path)
			for _, f := range p.files {
				for _, spec := range f.Imports {
					imported, _ := strconv.Unquote(spec.Path.Value)
					for _, allowed := range r.imports {
						if (r.tests || !f.test()) && within(strings.TrimPrefix(imported, module+"/"), allowed) {
							for at := p.path; at != "."; at = path.Dir(at) {
								used[at+" "+allowed] = true
							}
						}
					}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			for _, allowed := range rules[name].imports {
				if !used[name+" "+allowed] {
					t.Errorf("%s may import %s and does not: remove the permission", name, allowed)
				}
			}
		}
	})
	t.Run("packages exist", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(exists)), func(p string) bool { return within(p, name) }) {
				t.Errorf("%s has a rule and is gone: a rule about nothing guards nothing", name)
			}
		}
	})
	t.Run("the map", func(t *testing.T) {
		shown := mapped(t)
		for p := range exists {
			pure, ok := shown[p]
			if r, _, _ := ruleOf(p); !ok && !strings.HasSuffix(p, "test") {
				t.Errorf("%s is not on the map of docs/ARCHITECTURE.md", p)
			} else if ok && pure != r.pure {
				t.Errorf("%s: PURE on the map of docs/ARCHITECTURE.md: %v; its rule: %v", p, pure, r.pure)
			}
		}
		for p := range shown {
			if _, err := os.Stat(filepath.Join("../..", p)); err != nil {
				t.Errorf("%s is on the map of docs/ARCHITECTURE.md and is gone", p)
			}
		}
	})
}

// mapped returns the folders on the map of docs/ARCHITECTURE.md, and whether the map calls them PURE. A folder is below
// the last one with fewer spaces in front.
func mapped(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## The map\n\n```\n")
	block, _, found := strings.Cut(rest, "\n```\n")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no map")
	}
	shown := map[string]bool{}
	var above []string
	for line := range strings.Lines(block) {
		name, text, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if depth > len(above) {
			t.Fatalf("the map: %q is further to the right than the line above allows", line)
		}
		above = append(above[:depth], strings.Trim(name, "/\n"))
		shown[path.Join(above...)] = strings.HasPrefix(strings.TrimLeft(text, " "), "PURE")
	}
	return shown
}

// TestPublic: other modules can use the packages below pkg/ and nothing else.
func TestPublic(t *testing.T) {
	public := []string{"pkg/tributary"}
	var found []string
	for _, p := range packages(t, "../..") {
		if slices.Contains(strings.Split(p.path, "/"), "internal") || p.path == "docs" { // docs exports the text of a page: a file is embedded from its own folder
			continue
		}
		if names := exported(p); slices.Contains(public, p.path) && len(names) > 0 {
			found = append(found, p.path)
		} else if len(names) > 0 {
			t.Errorf("%s exports %v: move it to internal/, since what others can import cannot change", p.path, names)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, public) {
		t.Errorf("other modules can use %v, want %v", found, public)
	}
}

// exported returns the names that other packages can use.
func exported(p pkg) (names []string) {
	for _, f := range p.files {
		if f.test() || f.Name.Name == "main" {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					names = append(names, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names = appendExported(names, s.Name)
					case *ast.ValueSpec:
						names = appendExported(names, s.Names...)
					}
				}
			}
		}
	}
	return names
}

func appendExported(names []string, ids ...*ast.Ident) []string {
	for _, id := range ids {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	return names
}

// The test must detect violations.
func TestViolationsAreSeen(t *testing.T) {
	for _, c := range []struct{ name, path, source, want string }{
		{"direction", "internal/net/engine", `import _ "` + module + `/internal/front/proxy"`, "must not know internal/front/proxy"},
		{"direction from below", "internal/core/segment/sub", `import _ "` + module + `/internal/net/engine"`, "must not know"},
		{"a door and another", "internal/front/gateway", `import _ "` + module + `/internal/front/proxy"`, "must not know internal/front/proxy"},
		{"a door and one that it may know", "internal/front/rpc", `import _ "` + module + `/internal/front/queue"`, ""},
		{"a door and what divides", "internal/front/get", `import _ "` + module + `/internal/net/engine"`, "must not know internal/net/engine"},
		{"the operating system", "internal/host/peer", `import _ "` + module + `/internal/core/fault"`, "must not know internal/core/fault"},
		{"the product knows no laboratory", "internal/demo", `import _ "` + module + `/lab/netlab"`, "must not know lab/netlab"},
		{"the program from outside", "lab/e2e", `import _ "` + module + `/internal/net/link"`, "must not know internal/net/link"},
		{"unknown package", "internal/nowhere", ``, "no rule"},
		{"retired word", "internal/net/engine", "type connLap struct{}", `"lap" is retired`},
		{"retired word, small", "internal/net/engine", "func f(books int) {}", `"book" is retired`},
		{"another word", "internal/net/engine", "func planes(explained int) {}", ""},
		{"vague name", "internal/net/link/util", ``, "takes in everything"},
		{"prometheus", "internal/net/engine", `import _ "github.com/prometheus/client_golang/prometheus"`, "only internal/front/metrics"},
		{"netlink", "internal/daemon", `import _ "github.com/vishvananda/netlink"`, "only internal/net/link"},
		{"interfaces", "internal/front/proxy", "import \"net\"\nvar x, _ = net.Interfaces()", "lists interfaces"},
		{"pure: net/http", "internal/core/segment", `import _ "net/http"`, "PURE package imports net/http"},
		{"pure: net/url", "internal/core/segment", `import _ "net/url"`, ""},
		{"pure: log/slog", "internal/core/health", `import _ "log/slog"`, "PURE package imports"},
		{"pure: sync/atomic", "lab/sim", `import _ "sync/atomic"`, "PURE package imports"},
		{"pure: old rand", "lab/sim", `import _ "math/rand"`, "PURE package imports math/rand"},
		{"pure: clock", "internal/core/estimate", "import \"time\"\nvar x = time.Now()", "uses time.Now"},
		{"pure: clock by another name", "internal/core/estimate", "import clock \"time\"\nvar x = clock.Since", "uses time.Since"},
		{"pure: global rand", "internal/core/schedule", "import \"math/rand/v2\"\nvar x = rand.IntN(3)", "rand.IntN"},
		{"dot import", "internal/net/link", `import . "net"`, "dot import"},
		{"init", "internal/net/link", `func init() {}`, "func init"},
		{"long file", "internal/net/link", strings.Repeat("\n", maxLines), "lines, more than"},
		{"fine", "lab/sim", "import (\n\"math/rand/v2\"\n\"time\"\n)\nvar x = rand.New(rand.NewPCG(1, 2))\nvar y time.Time", ""},
		{"folder below may know the one above", "internal/net/link/sub", `import _ "` + module + `/internal/net/link"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			source := "// Package x is a test.\npackage x\n" + c.source + "\n"
			if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(violations(parse(t, c.path, dir)), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("package comments", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"a.go", "b.go"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("// Package x is told twice.\npackage x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := violations(parse(t, "internal/net/link", dir)); len(got) != 1 || !strings.Contains(got[0], "2 package comments") {
			t.Errorf("got %q", got)
		}
	})
}
