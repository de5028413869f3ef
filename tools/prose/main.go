// Command prose writes the texts that programs show to their users to files that a prose linter can read:
//
//	prose ROOT DIR FILE...
//
// The names of the files are relative to ROOT. For each Go file, DIR gets a file of the same name with .txt added: the
// string literals of three words or more, each on the line on which it begins. For each XML file, DIR gets the
// character data in the same way. Test files are skipped.
package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: prose ROOT DIR FILE...")
		os.Exit(2)
	}
	for _, file := range os.Args[3:] {
		if err := dump(os.Args[1], os.Args[2], file); err != nil {
			fmt.Fprintf(os.Stderr, "prose: %v\n", err)
			os.Exit(1)
		}
	}
}

// dump writes the texts of a file in root to a file in dir.
func dump(root, dir, file string) error {
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	p := &page{}
	switch {
	case strings.HasSuffix(file, "_test.go"):
		return nil
	case strings.HasSuffix(file, ".go"):
		err = p.goStrings(file, source)
	case strings.HasSuffix(file, ".xml"):
		err = p.xmlText(source)
	default:
		err = errors.New("neither Go nor XML")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	target := filepath.Join(dir, file+".txt")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, p.out.Bytes(), 0o644)
}

// page is a text in which each piece is on the same line as in its source.
type page struct {
	out  bytes.Buffer
	line int // number of lines in out
}

// add appends a piece of text that begins on the given line, counted from 1.
func (p *page) add(line int, text string) {
	for p.line < line-1 {
		p.out.WriteByte('\n')
		p.line++
	}
	text = strings.TrimRight(text, "\n") + "\n"
	p.out.WriteString(text)
	p.line += strings.Count(text, "\n")
}

var (
	words = regexp.MustCompile(`[A-Za-z]{2,}[^A-Za-z]+[A-Za-z]+[^A-Za-z]+[A-Za-z]{2,}`)
	verbs = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)
)

// goStrings adds the string literals of a Go file. Concatenated literals count as one.
func (p *page) goStrings(name string, source []byte) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				return false
			}
		case ast.Expr:
			text, ok := literal(n)
			if !ok {
				return true
			}
			if words.MatchString(text) {
				if !strings.ContainsAny(text[len(text)-1:], ".?!\n") {
					text += "." // separates it from the next literal
				}
				p.add(files.Position(n.Pos()).Line, verbs.ReplaceAllString(text, "X"))
			}
			return false
		}
		return true
	})
	return nil
}

// literal returns the value of a string literal, or of a concatenation; each part that is not a literal becomes an X.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, okX := literal(e.X)
		y, okY := literal(e.Y)
		switch {
		case okX && okY:
			return x + y, true
		case okX:
			return x + "X", true
		case okY:
			return "X" + y, true
		}
	}
	return "", false
}

// xmlText adds the character data of an XML file.
func (p *page) xmlText(source []byte) error {
	d := xml.NewDecoder(bytes.NewReader(source))
	for {
		line := 1 + bytes.Count(source[:d.InputOffset()], []byte("\n"))
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if text, ok := t.(xml.CharData); ok && words.Match(text) {
			p.add(line, strings.ReplaceAll(string(text), `\'`, "'"))
		}
	}
}
