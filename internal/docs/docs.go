// Package docs reads the project's Markdown for the tests that verify it: commands run or say why they do not, links
// have existing targets, and figures match the benchmarks.
//
// It supports the Markdown that this project uses: fenced and indented code, headings with #, inline links. A comment
// directly above a block of commands says how it is tested: "not run: REASON" or "run by TestName". Without one,
// TestDocs in lab/e2e runs it.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Page is a Markdown file.
type Page struct {
	Path string // relative to the repository, with slashes
	Text string
}

// Pages reads the pages of the repository at root that are meant for users and contributors, sorted by path.
func Pages(root string) ([]Page, error) {
	var pages []Page
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") ||
				slices.Contains([]string{"node_modules", "testdata", "out", "dist", "bin"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pages = append(pages, Page{Path: filepath.ToSlash(relative), Text: string(text)})
		return nil
	})
	return pages, err
}

// Block is a block of code.
type Block struct {
	Line     int    // number of its first line, from 1
	Language string // language named by the fence; "" if it names none, or if the block is indented
	Text     string // without its indentation
	Note     string // text of the comment directly above
}

var (
	fence   = regexp.MustCompile("^( *)(```+)([a-z]*)$")
	comment = regexp.MustCompile(`^ *<!-- (.*) -->$`)
	item    = regexp.MustCompile(`^ *([-*]|\d+\.) `)
)

// Blocks returns a page's blocks of code, in order.
func Blocks(text string) (blocks []Block) {
	lines := strings.Split(text, "\n")
	note, list := "", false // the comment that the next block has; whether the text belongs to a list
	for n := 0; n < len(lines); n++ {
		line := lines[n]
		if m := fence.FindStringSubmatch(line); m != nil {
			b := Block{Line: n + 2, Language: m[3], Note: note}
			for n++; n < len(lines) && strings.TrimSpace(lines[n]) != m[2]; n++ {
				b.Text += strings.TrimPrefix(lines[n], m[1]) + "\n"
			}
			blocks, note = append(blocks, b), ""
			continue
		}
		switch m := comment.FindStringSubmatch(line); {
		case m != nil:
			note = m[1]
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "    ") && !list &&
			(n == 0 || strings.TrimSpace(lines[n-1]) == "" || comment.MatchString(lines[n-1])):
			b := Block{Line: n + 1, Note: note}
			for ; n < len(lines) && (strings.HasPrefix(lines[n], "    ") || strings.TrimSpace(lines[n]) == ""); n++ {
				b.Text += strings.TrimPrefix(lines[n], "    ") + "\n"
			}
			n--
			b.Text = strings.TrimRight(b.Text, "\n") + "\n"
			blocks, note = append(blocks, b), ""
		default:
			note = ""
			if item.MatchString(line) {
				list = true
			} else if !strings.HasPrefix(line, " ") {
				list = false
			}
		}
	}
	return blocks
}

// starts matches the programs that mark a block without a language as one of commands.
var starts = regexp.MustCompile(`^(\$ )?(sudo )?([a-zA-Z_]+=\S* )*(\S*bin/)?(tributary|tributary-lab|tributary-relay|make|go|curl|wget|apt|apt-get|git|pip|docker|` +
	`systemctl|install|cat|ls|adb|gsettings|ssh|kill|export|podman|dpkg|rpm|jq|sha256sum|cosign|nft|ip) `)

// IsCommands reports whether the block contains commands for a shell.
func (b Block) IsCommands() bool {
	switch b.Language {
	case "sh", "console":
		return true
	case "":
		return starts.MatchString(b.Text)
	}
	return false
}

// IsRun reports whether TestDocs runs the block.
func (b Block) IsRun() bool { return b.Note == "" && (b.Language == "sh" || b.Language == "console") }

// Commands returns the block's commands. In a block that also shows output they follow "$ "; in others each line is a
// command. Lines with a final backslash are joined to the next.
func (b Block) Commands() (commands []string) {
	shown := strings.HasPrefix(b.Text, "$ ")
	joined := strings.ReplaceAll(b.Text, "\\\n", " ")
	for line := range strings.Lines(joined) {
		line = strings.TrimRight(line, "\n")
		if shown {
			rest, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			line = rest
		}
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "#") {
			commands = append(commands, line)
		}
	}
	return commands
}

// prose returns a page's lines, with the lines in blocks of code emptied.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	for _, b := range Blocks(text) {
		for i := range strings.Count(b.Text, "\n") {
			lines[b.Line-1+i] = ""
		}
	}
	return lines
}

// Link is a link or a picture in a page.
type Link struct {
	Line   int
	Target string
}

var (
	target = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	span   = regexp.MustCompile("`[^`]*`")
)

// Links returns a page's links, in order.
func Links(text string) (links []Link) {
	for n, line := range prose(text) {
		for _, m := range target.FindAllStringSubmatch(line, -1) {
			links = append(links, Link{Line: n + 1, Target: m[1]})
		}
	}
	return links
}

// Spans returns the code in a page's text, by line.
func Spans(text string) map[int][]string {
	spans := map[int][]string{}
	for n, line := range prose(text) {
		for _, s := range span.FindAllString(line, -1) {
			spans[n+1] = append(spans[n+1], strings.Trim(s, "`"))
		}
	}
	return spans
}

var outside = regexp.MustCompile(`[^\pL\pN _-]`)

// Anchors returns the fragments that link to a page's headings, as GitHub generates them.
func Anchors(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, line := range prose(text) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			heading = strings.ToLower(strings.TrimSpace(heading))
			anchors[strings.ReplaceAll(outside.ReplaceAllString(heading, ""), " ", "-")] = true
		}
	}
	return anchors
}
