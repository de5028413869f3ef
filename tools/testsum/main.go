// Command testsum turns the output of go test -json on its standard input into the ordinary lines of go test, adds the
// whole output of the tests that failed, and appends a line for every skipped test, with its reason, to the file named by
// its argument. Its exit status is 1 if a test or a build failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
)

// event is a line of go test -json (go doc test2json); build output carries ImportPath.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ... | testsum SKIPPED-FILE")
		os.Exit(2)
	}
	skipped, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	failed, err := summarize(os.Stdin, os.Stdout, skipped)
	if closeErr := skipped.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	if failed {
		os.Exit(1)
	}
}

// summarize copies r to out as described above and reports whether anything failed.
func summarize(r io.Reader, out, skipped io.Writer) (failed bool, err error) {
	logs := map[string]*strings.Builder{} // output of the tests that run, by package and test
	in := bufio.NewReader(r)
	for {
		line, readErr := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				_, err = out.Write(line) // what go itself says, not a test
			} else {
				failed = failed || e.Action == "fail" || e.Action == "build-fail"
				err = handle(e, logs, out, skipped)
			}
			if err != nil {
				return failed, err
			}
		}
		if readErr == io.EOF {
			return failed, nil
		}
		if readErr != nil {
			return failed, readErr
		}
	}
}

func handle(e event, logs map[string]*strings.Builder, out, skipped io.Writer) (err error) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" && !strings.HasPrefix(e.Output, "-test.shuffle ") { // the seed matters if the package fails
			if e.Output != "PASS\n" {
				_, err = io.WriteString(out, e.Output)
			}
			return err
		}
		if logs[key] == nil {
			logs[key] = new(strings.Builder)
		}
		logs[key].WriteString(e.Output)
		return nil
	case "fail":
		if log := logs[key]; log != nil {
			_, err = io.WriteString(out, log.String())
		}
	case "skip":
		if log := logs[key]; log != nil {
			_, err = fmt.Fprintf(skipped, "--- SKIP: %s %s: %s\n", path.Base(e.Package), e.Test, reason(log.String()))
		}
	case "pass":
	default:
		return nil
	}
	delete(logs, key)
	return err
}

// place is where testing.T.Log was called, which precedes what was logged.
var place = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)$`)

// reason returns the last thing that a test logged before it was skipped.
func reason(log string) string {
	why := "no reason given"
	for line := range strings.Lines(log) {
		if m := place.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			why = m[1]
		}
	}
	return why
}
