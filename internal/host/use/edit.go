package use

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// edit replaces Old with New. Old begins at the offset At of the file's content before all edits.
type edit struct {
	At  int    `json:"at"`
	Old string `json:"old,omitempty"`
	New string `json:"new"`
}

// apply applies edits, which must be sorted by offset.
func apply(text string, edits []edit) string {
	var b strings.Builder
	from := 0
	for _, e := range edits {
		b.WriteString(text[from:e.At])
		b.WriteString(e.New)
		from = e.At + len(e.Old)
	}
	b.WriteString(text[from:])
	return b.String()
}

// changed is a file with the edits that were made.
type changed struct {
	Path    string   `json:"path"`
	Created bool     `json:"created,omitempty"` // the file did not exist before
	Folders []string `json:"folders,omitempty"` // folders created for it, the outermost first
	Before  string   `json:"before"`            // digest of the content before the edits
	After   string   `json:"after"`
	Edits   []edit   `json:"edits"`
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// revert returns the content without the edits. The file may have changed since, except where the edits are.
func (c changed) revert(now string) (string, error) {
	switch digest(now) {
	case c.Before:
		return now, nil // never written
	case c.After:
		var back []edit
		shift := 0
		for _, e := range c.Edits {
			back = append(back, edit{At: e.At + shift, Old: e.New, New: e.Old})
			shift += len(e.New) - len(e.Old)
		}
		if text := apply(now, back); digest(text) == c.Before {
			return text, nil
		}
	}
	from := 0
	var b strings.Builder
	for _, e := range c.Edits {
		i := strings.Index(now[from:], e.New)
		if i < 0 || strings.Count(now, e.New) != c.count(e.New) {
			return "", fmt.Errorf("%s has changed since, and these lines of Tributary's with it: remove them yourself, then run this again:\n%s",
				c.Path, masked(strings.TrimSpace(e.New)))
		}
		b.WriteString(now[from : from+i])
		b.WriteString(e.Old)
		from += i + len(e.New)
	}
	b.WriteString(now[from:])
	return b.String(), nil
}

// count returns how often the edits insert a text.
func (c changed) count(text string) (n int) {
	for _, e := range c.Edits {
		n += strings.Count(e.New, text)
	}
	return n
}

// layout is the layout of a text file.
type layout struct {
	newline string
	ended   bool // the last line ends with a newline
}

const byteOrderMark = "\ufeff"

// layoutOf returns an error for content that cannot be edited by lines.
func layoutOf(path, text string) (layout, error) {
	if bytes.IndexByte([]byte(text), 0) >= 0 {
		return layout{},
			fmt.Errorf("%s is not in UTF-8 or ASCII: convert it, or edit it yourself; --print shows the changes", path)
	}
	l := layout{newline: "\n", ended: text == "" || text == byteOrderMark || strings.HasSuffix(text, "\n")}
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		l.newline = "\r\n"
	}
	return l, nil
}

// appended returns the edit that adds lines at the end of a file.
func (l layout) appended(text string, lines ...string) edit {
	added := strings.Join(lines, l.newline) + l.newline
	if !l.ended {
		added = l.newline + strings.TrimSuffix(added, l.newline) // the last line stays without a newline
	}
	return edit{At: len(text), New: added}
}

// line is a line of a text without its newline.
type line struct {
	at   int
	text string
}

// linesOf returns the lines of a text, without a byte order mark.
func linesOf(text string) (all []line) {
	at := 0
	for raw := range strings.Lines(text) {
		l := line{at, strings.TrimRight(raw, "\r\n")}
		if rest, ok := strings.CutPrefix(l.text, byteOrderMark); ok && at == 0 {
			l = line{len(byteOrderMark), rest}
		}
		all = append(all, l)
		at += len(raw)
	}
	return all
}
