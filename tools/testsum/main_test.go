package main

import (
	"strings"
	"testing"
)

func TestSummarize(t *testing.T) {
	const in = `go: downloading example.com/x
{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Output":"-test.shuffle 17\n"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"    a_test.go:1: chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestRoot","Output":"=== RUN   TestRoot\n"}
{"Action":"output","Package":"m/a","Test":"TestRoot","Output":"    a_test.go:9: needs root\n"}
{"Action":"output","Package":"m/a","Test":"TestRoot","Output":"--- SKIP: TestRoot (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestRoot"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a"}
`
	var out, skipped strings.Builder
	failed, err := summarize(strings.NewReader(in), &out, &skipped)
	if err != nil || failed {
		t.Fatalf("failed %v, error %v", failed, err)
	}
	if want := "go: downloading example.com/x\nok  \tm/a\t0.1s\n"; out.String() != want {
		t.Errorf("output %q, want %q", out.String(), want)
	}
	if want := "--- SKIP: a TestRoot: needs root\n"; skipped.String() != want {
		t.Errorf("skipped %q, want %q", skipped.String(), want)
	}
}

func TestSummarizeFailures(t *testing.T) {
	for name, in := range map[string]string{
		"test": `{"Action":"output","Package":"m/a","Test":"TestBad","Output":"a_test.go:3: wrong\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad"}
`,
		"shuffled": `{"Action":"output","Package":"m/a","Output":"-test.shuffle 17 wrong\n"}
{"Action":"fail","Package":"m/a"}
`,
		"build": `{"ImportPath":"m/a","Action":"build-output","Output":"a.go:1: wrong\n"}
{"ImportPath":"m/a","Action":"build-fail"}
`,
	} {
		t.Run(name, func(t *testing.T) {
			var out, skipped strings.Builder
			failed, err := summarize(strings.NewReader(in), &out, &skipped)
			if err != nil || !failed || !strings.Contains(out.String(), "wrong") {
				t.Errorf("failed %v, error %v, output %q", failed, err, out.String())
			}
		})
	}
}
