package httprules

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// The files, relative to the root of the module.
const (
	RulesFile = "docs/http-rules.toml"
	Document  = "docs/HTTP.md"
)

// Rule is one rule.
type Rule struct {
	Number  int
	Section string
	Text    string `toml:"text"`
	Source  string `toml:"source"` // section of an RFC, or "design"
	Reason  string `toml:"reason"` // why no test proves it; "" = one must
}

// Rules are all rules.
type Rules struct {
	Rules    []Rule // in the order of the file
	Required []int  // must be among Rules
}

// Load reads RulesFile below root.
func Load(root string) (*Rules, error) {
	var file struct {
		Required string `toml:"required"`
		Section  []struct {
			Title string          `toml:"title"`
			Rules map[string]Rule `toml:"rules"`
		} `toml:"section"`
	}
	name := filepath.Join(root, RulesFile)
	meta, err := toml.DecodeFile(name, &file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", RulesFile, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown keys: %v", RulesFile, unknown)
	}
	b := &Rules{}
	if b.Required, err = ParseList(file.Required); err != nil {
		return nil, fmt.Errorf("%s: required: %w", RulesFile, err)
	}
	at := map[string]int{} // section of each rule, -1 once the rule is appended
	for i, s := range file.Section {
		for key := range s.Rules {
			if _, twice := at[key]; twice {
				return nil, fmt.Errorf("%s: %s is there twice", RulesFile, key)
			}
			at[key] = i
		}
	}
	// Rules go in the order of the file, which maps do not keep.
	for _, k := range meta.Keys() {
		if len(k) < 3 || k[0] != "section" || k[1] != "rules" || at[k[2]] < 0 {
			continue
		}
		s := file.Section[at[k[2]]]
		r := s.Rules[k[2]]
		r.Section = s.Title
		if r.Number, err = ParseNumber(k[2]); err != nil {
			return nil, fmt.Errorf("%s: %w", RulesFile, err)
		}
		if r.Text == "" || r.Source == "" {
			return nil, fmt.Errorf("%s: %s needs a text and a source", RulesFile, k[2])
		}
		b.Rules = append(b.Rules, r)
		at[k[2]] = -1 // done
	}
	return b, nil
}

var numberForm = regexp.MustCompile(`^R([1-9][0-9]*)$`)

// ParseNumber reads a rule's number: "R37".
func ParseNumber(s string) (int, error) {
	m := numberForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a rule number like R37", s)
	}
	return strconv.Atoi(m[1])
}

// ParseList reads numbers and spans: "R1-R6, R9".
func ParseList(s string) (numbers []int, err error) {
	for item := range strings.SplitSeq(s, ",") {
		first, last, span := strings.Cut(strings.TrimSpace(item), "-")
		a, err := ParseNumber(first)
		if err != nil {
			return nil, err
		}
		b := a
		if span {
			if b, err = ParseNumber(last); err != nil {
				return nil, err
			}
		}
		for n := a; n <= b; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// Check returns the faults of the rules and their tests, one per line.
func (b *Rules) Check(tests Tests) (bad []string) {
	known := map[int]bool{}
	for _, r := range b.Rules {
		known[r.Number] = true
		if r.Reason == "" && len(tests[r.Number]) == 0 {
			bad = append(bad, fmt.Sprintf("R%d has no test: name a subtest after it, t.Run(\"R%d ...\"), "+
				"or give a reason in %s", r.Number, r.Number, RulesFile))
		}
	}
	for _, n := range b.Required {
		if !known[n] {
			bad = append(bad, fmt.Sprintf("R%d is required but not in %s", n, RulesFile))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(tests)) {
		if of := tests[n]; !known[n] {
			bad = append(bad, fmt.Sprintf("%s %s names R%d, which is not in %s", of[0].File, of[0].Func, n, RulesFile))
		}
	}
	return bad
}
