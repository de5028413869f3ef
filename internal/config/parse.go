package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Problem is one error in a configuration.
type Problem struct {
	Text string

	keys []string // affected keys, the likeliest first
	line int      // 0 = the line of the key
}

func (p Problem) Error() string {
	if len(p.keys) == 0 {
		return p.Text
	}
	return title(p.keys[0]) + ": " + p.Text
}

// title formats a key as users write it: [link.wlan0] dns.
func title(key string) string {
	if rest, ok := strings.CutPrefix(key, "relay."); ok {
		return "[relay] " + rest
	}
	if rest, ok := strings.CutPrefix(key, "link."); ok {
		if i := strings.LastIndexByte(rest, '.'); i > 0 && !strings.HasSuffix(rest, `"`) {
			return "[link." + rest[:i] + "] " + rest[i+1:]
		}
		return "[link." + rest + "]"
	}
	return key
}

// linkKey returns the full name of a key of a link's table.
func linkKey(link, key string) string { return toml.Key{"link", link, key}.String() }

// parse applies the text of a file to f and returns everything that cannot be read, in the order of the file.
func (f *File) parse(text string) []Problem {
	var all map[string]toml.Primitive
	md, err := toml.Decode(text, &all)
	if err != nil {
		p := Problem{Text: strings.TrimPrefix(err.Error(), "toml: ")}
		if e, ok := errors.AsType[toml.ParseError](err); ok {
			p.Text, p.line = e.Message, e.Position.Line
		}
		return []Problem{p}
	}
	d := decoder{text: text, md: &md, lines: map[string]int{}}
	for key, value := range all {
		if key == "link" {
			d.links(f, value)
			continue
		}
		if key == "relay" {
			d.relay(f, value)
			continue
		}
		d.field(reflect.ValueOf(&f.Config).Elem(), toml.Key{key}, value)
	}
	if len(f.Link) == 0 {
		f.Link = nil
	}
	f.lines = d.lines
	slices.SortFunc(d.wrong, func(a, b Problem) int { // problems without a line have a fixed order, too
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.Error(), b.Error()))
	})
	return d.wrong
}

// decoder collects problems instead of stopping at the first.
type decoder struct {
	text  string // source of md
	md    *toml.MetaData
	lines map[string]int
	wrong []Problem
}

func (d *decoder) add(key toml.Key, value toml.Primitive, format string, args ...any) {
	d.wrong = append(d.wrong, Problem{
		keys: []string{key.String()}, line: d.line(value), Text: fmt.Sprintf(format, args...),
	})
}

// line returns the line on which a value begins, 0 if the value has no line of its own. For a string of several lines,
// the library reports the line of its end, but the offset of its beginning.
func (d *decoder) line(value toml.Primitive) int {
	e, _ := errors.AsType[toml.ParseError](d.md.PrimitiveDecode(value, &placed{}))
	if e.Position.Line == 0 || e.Position.Start > len(d.text) {
		return 0
	}
	return 1 + strings.Count(d.text[:e.Position.Start], "\n")
}

// placed rejects every value, so that the library's error contains the position.
type placed struct{}

// UnmarshalTOML implements toml.Unmarshaler.
func (*placed) UnmarshalTOML(any) error { return errors.New("") }

func (d *decoder) links(f *File, value toml.Primitive) {
	var tables map[string]toml.Primitive
	// "" for [link.NAME] alone
	if t := d.md.Type("link"); t != "" && t != "Hash" || d.md.PrimitiveDecode(value, &tables) != nil {
		d.add(toml.Key{"link"}, value, "is the name of tables: write links = [...] to list links")
		return
	}
	f.Link = map[string]Link{}
	for name, table := range tables {
		var keys map[string]toml.Primitive
		if t := d.md.Type("link", name); t != "" && t != "Hash" || d.md.PrimitiveDecode(table, &keys) != nil {
			d.add(toml.Key{"link", name}, table, "is not a table: write [link.%s] and its keys below", toml.Key{name})
			continue
		}
		d.lines[toml.Key{"link", name}.String()] = d.line(table)
		var l Link
		for key, v := range keys {
			d.field(reflect.ValueOf(&l).Elem(), toml.Key{"link", name, key}, v)
		}
		f.Link[name] = l
	}
}

func (d *decoder) relay(f *File, value toml.Primitive) {
	var keys map[string]toml.Primitive
	if d.md.Type("relay") != "Hash" || d.md.PrimitiveDecode(value, &keys) != nil {
		d.add(toml.Key{"relay"}, value, "is not a table: write [relay] and its keys below")
		return
	}
	for key, v := range keys {
		d.field(reflect.ValueOf(&f.Relay).Elem(), toml.Key{"relay", key}, v)
	}
}

// field decodes a value into the struct field with the key's name.
func (d *decoder) field(into reflect.Value, key toml.Key, value toml.Primitive) {
	last := key[len(key)-1]
	field := reflect.Value{}
	var names []string
	for i := range into.NumField() {
		name := into.Type().Field(i).Tag.Get("toml")
		names = append(names, name)
		if name == last {
			field = into.Field(i)
		}
	}
	if !field.IsValid() {
		text := "is not a known key"
		near := nearest(last, names)
		switch inTable := len(key) > 1; {
		case !inTable && gone[last] != "":
			text = gone[last]
		case near != "":
			text += fmt.Sprintf(": did you mean %s?", near)
		case inTable && hasKey(reflect.TypeFor[Config](), last):
			text += " in a table: write it above the first [link.NAME]"
		case !inTable && hasKey(reflect.TypeFor[Link](), last):
			text += " outside of a table: write it below a [link.NAME]"
		}
		d.add(key, value, "%s", text)
		return
	}
	if line := d.line(value); line > 0 {
		d.lines[key.String()] = line
	}
	want, types := kind(field.Type())
	if have := d.md.Type(key...); !slices.Contains(types, have) {
		d.add(key, value, "want %s, not %s", want, kinds[have])
		return
	}
	if err := d.md.PrimitiveDecode(value, field.Addr().Interface()); err != nil {
		text := "want " + want
		if e, ok := errors.AsType[toml.ParseError](err); ok {
			text = strings.TrimPrefix(e.Message, "toml: ")
		}
		d.add(key, value, "%s", text)
		return
	}
	if field.Kind() == reflect.Slice && field.Len() == 0 {
		field.SetZero() // as if unset: adding an empty list does not change the configuration
	}
}

// gone lists the removed keys that older files may have, each with a hint.
var gone = map[string]string{
	"alg3":         `was removed: delete it, or write scheduler = "alg3-literal" for the formulas as published`,
	"continuation": "was removed: delete it; an interrupted range is always resumed where it broke off",
}

// hasKey reports whether a table has such a key.
func hasKey(table reflect.Type, key string) bool {
	for i := range table.NumField() {
		if table.Field(i).Tag.Get("toml") == key {
			return true
		}
	}
	return false
}

// kinds names the types of TOML.
var kinds = map[string]string{
	"String": "a string", "Integer": "a number", "Float": "a fraction", "Bool": "true or false", "Datetime": "a date",
	"Array": "a list", "Hash": "a table", "ArrayHash": "a list of tables", "": "a table",
}

// kind names the kind of a value, and the TOML types that it may have.
func kind(t reflect.Type) (string, []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Bytes]():
		return `a size like "64MiB"`, []string{"String", "Integer"}
	case reflect.TypeFor[Rate]():
		return `a rate like "20Mbit/s"`, []string{"String"}
	case reflect.TypeFor[time.Duration]():
		return `a time like "60s"`, []string{"String", "Integer"}
	case reflect.TypeFor[[]string]():
		return `a list of strings, ["..."]`, []string{"Array"}
	case reflect.TypeFor[[]uint16]():
		return "a list of port numbers, [443]", []string{"Array"}
	case reflect.TypeFor[int]():
		return "a number", []string{"Integer"}
	case reflect.TypeFor[bool]():
		return "true or false", []string{"Bool"}
	}
	return `a string, "..."`, []string{"String"}
}

// nearest returns the name that differs from typed in at most two letters, "" if there is none. It ignores case, and
// treats dashes, which flags use, as underscores.
func nearest(typed string, names []string) string {
	typed = strings.ReplaceAll(strings.ToLower(typed), "-", "_")
	best, least := "", 3
	for _, n := range names {
		if d := distance(typed, n); d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: the number of letters that must be added, dropped or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := last
			if a[i] != b[j] {
				d++
			}
			last = row[j+1]
			row[j+1] = min(d, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}
