// Command modproxy writes a module into a folder that the go command reads as a module proxy: the same module that
// users of `go install` get, without a network. MODULE is a folder that contains only the files of a commit, such as
// `git archive` writes.
//
//	modproxy -o FOLDER -version VERSION MODULE
//	GOPROXY=file://FOLDER go install PATH@VERSION
//
// It prints the size of the zip and the folders in it.
package main

import (
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
}

// run executes the command line args.
func run(args []string) error {
	flags := flag.NewFlagSet("modproxy", flag.ContinueOnError)
	out := flags.String("o", "", "`FOLDER` of the proxy")
	version := flags.String("version", "", "semantic `VERSION`, with its v")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *out == "" {
		return errors.New("usage: modproxy -o FOLDER -version VERSION MODULE")
	}
	dir := flags.Arg(0)
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	parsed, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	if len(parsed.Replace)+len(parsed.Exclude) > 0 {
		return errors.New("go.mod has a replace or exclude directive: go install refuses it")
	}
	m := module.Version{Path: parsed.Module.Mod.Path, Version: *version}
	if err := module.Check(m.Path, m.Version); err != nil {
		return err
	}
	folder := filepath.Join(*out, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	packed := filepath.Join(folder, m.Version+".zip")
	if err := writeZip(packed, m, dir); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"list": m.Version + "\n", m.Version + ".info": fmt.Sprintf(`{"Version":%q}`, m.Version),
		m.Version + ".mod": string(text),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return report(packed, m)
}

// writeZip packs the files below dir, without the modules in it.
func writeZip(path string, m module.Version, dir string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = modzip.CreateFromDir(f, m, dir)
	return errors.Join(err, f.Close())
}

// report prints the contents of a zip.
func report(path string, m module.Version) error {
	r, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer r.Close()
	sizes := map[string]uint64{}
	for _, f := range r.File {
		top, _, below := strings.Cut(strings.TrimPrefix(f.Name, m.String()+"/"), "/")
		if !below {
			top = "."
		}
		sizes[top] += f.CompressedSize64
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%d bytes in %d files\n", info.Size(), len(r.File))
	for _, top := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Printf("%10d %s\n", sizes[top], top)
	}
	return nil
}
