package httprules

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Test is a test function that has subtests named after a rule.
type Test struct {
	Dir  string // of the package, relative to the root
	File string // relative to the root
	Func string
}

// NamedAfter reports whether the function itself, not a subtest, carries the number of a rule.
func (t Test) NamedAfter(rule int) bool { return slices.Contains(functionNumbers(t.Func), rule) }

// Tests are the tests of each rule, in order of file and function.
type Tests map[int][]Test

// Scan finds the tests below root by their source: a test proves a rule if the rule's number begins a string in it, in
// a function that it calls or in a variable that it reads. Several rules are written "R19 R22 ..." or "R96/R97 ...".
// Functions may also be named after rules: TestR039_R040_BadHeads. Failure messages of tests do not count.
func Scan(root string) (Tests, error) {
	dirs := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (slices.Contains(untested, d.Name()) || d.Name()[0] == '.'):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, "_test.go"):
			dir := filepath.Dir(name)
			dirs[dir] = append(dirs[dir], name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tests := Tests{}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		below, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		if err := scanPackage(filepath.ToSlash(below), dirs[dir], tests); err != nil {
			return nil, err
		}
	}
	for _, of := range tests {
		slices.SortFunc(of, func(a, b Test) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Func, b.Func))
		})
	}
	return tests, nil
}

// untested are folders whose files do not prove rules, among them the tests of this package.
var untested = []string{"testdata", "tools", "httprules", "mutate"}

// decl is a declaration of a package's tests.
type decl struct {
	file  string
	rules []int
	uses  []string // names of declarations
}

func scanPackage(dir string, files []string, tests Tests) error {
	decls := map[string]*decl{} // by name; methods with the same name are merged
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		file := path.Join(dir, filepath.Base(name))
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(decls, f.Name.Name+"."+d.Name.Name, read(f, file, d))
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, n := range v.Names {
							add(decls, f.Name.Name+"."+n.Name, read(f, file, v))
						}
					}
				}
			}
		}
	}
	for name, d := range decls {
		_, fn, _ := strings.Cut(name, ".")
		if !strings.HasPrefix(fn, "Test") && !strings.HasPrefix(fn, "Fuzz") {
			continue
		}
		rules := reached(decls, name)
		for _, n := range functionNumbers(fn) {
			rules[n] = true
		}
		for n := range rules {
			tests[n] = append(tests[n], Test{dir, d.file, fn})
		}
	}
	return nil
}

func add(decls map[string]*decl, name string, d *decl) {
	if old := decls[name]; old != nil {
		old.rules = append(old.rules, d.rules...)
		old.uses = append(old.uses, d.uses...)
		return
	}
	decls[name] = d
}

// read collects the rules that node names and the parts of the package that it uses.
func read(f *ast.File, file string, node ast.Node) *decl {
	d := &decl{file: file}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && complaint[s.Sel.Name] {
				return false
			}
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				d.rules = append(d.rules, numbers(s)...)
			}
		case *ast.Ident:
			// A name that resolves to a local object in this file hides the package's.
			if n.Obj == nil || f.Scope.Lookup(n.Name) == n.Obj {
				d.uses = append(d.uses, f.Name.Name+"."+n.Name)
			}
		}
		return true
	})
	return d
}

var complaint = map[string]bool{
	"Error": true, "Errorf": true, "Fatal": true, "Fatalf": true, "Log": true, "Logf": true, "Skip": true,
	"Skipf": true,
}

var (
	leading = regexp.MustCompile(`^R[1-9][0-9]*\b`)
	named   = regexp.MustCompile(`\bR([1-9][0-9]*)\b`)
)

// numbers returns the rules at the beginning of a subtest's name, or none if it does not begin with a rule.
func numbers(name string) (all []int) {
	if !leading.MatchString(name) {
		return nil
	}
	for _, m := range named.FindAllStringSubmatch(name, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			all = append(all, n)
		}
	}
	return all
}

var functionForm = regexp.MustCompile(`^(?:Test|Fuzz)((?:R[0-9]+_?)+)`)

// functionNumbers returns the rules in a test function's name.
func functionNumbers(name string) (all []int) {
	m := functionForm.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	for s := range strings.SplitSeq(strings.ReplaceAll(m[1], "_", ""), "R") {
		if n, err := strconv.Atoi(s); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// reached returns the rules of a declaration and of all declarations that it uses.
func reached(decls map[string]*decl, name string) map[int]bool {
	rules, seen := map[int]bool{}, map[string]bool{}
	for todo := []string{name}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		d := decls[at]
		if d == nil || seen[at] {
			continue
		}
		seen[at] = true
		for _, n := range d.rules {
			rules[n] = true
		}
		todo = append(todo, d.uses...)
	}
	return rules
}
