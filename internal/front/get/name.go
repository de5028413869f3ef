package get

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tributary-http/tributary/internal/host/partial"
)

// defaultName is the name for URLs whose path ends in a slash.
const defaultName = "index.html"

// maxName is the maximum length of a file's name in bytes, so that it fits with the longest suffix into the 255 bytes
// of file systems.
const maxName = 255 - len(partial.Suffix)

// NameOf returns the name under which a URL is saved unless something else gives one.
func NameOf(rawURL string) (string, error) {
	l, err := parseLocation(rawURL)
	if err != nil {
		return "", err
	}
	return l.name(), nil
}

// name returns the file name from the last segment of the path.
func (l location) name() string {
	segment := path.Base(l.url.EscapedPath())
	if strings.HasSuffix(l.url.Path, "/") {
		segment = ""
	}
	if plain, err := url.PathUnescape(segment); err == nil {
		segment = plain
	}
	return SafeName(segment)
}

// serverName returns the name from Content-Disposition, or otherwise from the location of the object.
func serverName(h http.Header, at location) string {
	// Some servers send whole paths, with either separator: RFC 6266 section 4.3 takes the last segment.
	name := dispositionName(h.Get("Content-Disposition"))
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	if name != "" {
		return SafeName(name)
	}
	return at.name()
}

// dispositionName returns the file name in a Content-Disposition field (RFC 6266), "" if there is none. Many servers
// escape bytes as in a URL, or send ISO 8859-1, without saying so.
func dispositionName(field string) string {
	_, params, err := mime.ParseMediaType(field)
	name := params["filename"]
	if err != nil {
		name = rawName(field)
	}
	if plain, err := url.PathUnescape(name); err == nil && utf8.ValidString(plain) && !extended.MatchString(field) {
		return plain
	}
	if !utf8.ValidString(name) {
		latin := make([]rune, len(name))
		for i := range len(name) {
			latin[i] = rune(name[i])
		}
		return string(latin)
	}
	return name
}

var (
	extended = regexp.MustCompile(`(?i);\s*filename\*\s*=`) // a name whose encoding is declared (RFC 8187)
	bare     = regexp.MustCompile(`(?i)(?:^|;)\s*filename\s*=\s*`)
)

// rawName returns the name in a field that breaks the grammar: one with spaces but no quotes, or with quotes inside. A
// field with two names is ambiguous.
func rawName(field string) string {
	found := bare.FindAllStringIndex(field, 2)
	if len(found) != 1 {
		return ""
	}
	name, quoted := strings.CutPrefix(field[found[0][1]:], `"`)
	end := strings.Index(name, ";")
	if quoted {
		if end = strings.Index(name, `";`); end < 0 {
			end = strings.LastIndex(name, `"`)
		}
	}
	if end >= 0 {
		name = name[:end]
	}
	return strings.TrimSpace(name)
}

// SafeName makes a base name from a server's text or a URL. The name can neither leave the folder nor be hidden in it,
// a terminal shows it unchanged, and it is never that of a partial file.
func SafeName(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == utf8.RuneError, r == '/', r == '\\', !unicode.IsGraphic(r): // bidirectional controls are not graphic
			b.WriteByte('_')
		default:
			b.WriteRune(r)
		}
	}
	name := strings.TrimRight(strings.TrimSpace(b.String()), ". ") // Windows' file systems ignore these at the end
	if name == "" {
		return defaultName
	}
	if name[0] == '.' || name[0] == '-' { // hidden, or an option of the next command
		name = "_" + name[1:]
	}
	name = shorten(name)
	if i := len(name) - len(partial.Suffix); i >= 0 && strings.EqualFold(name[i:], partial.Suffix) {
		name = name[:i] + "_" + name[i+1:]
	}
	return name
}

// shorten cuts a name to maxName bytes, before its extension.
func shorten(name string) string { return shortenTo(name, maxName) }

// shortenTo cuts a name to this number of bytes, before its extension.
func shortenTo(name string, most int) string {
	if len(name) <= most {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > 16 {
		ext = ""
	}
	stem := name[:most-len(ext)]
	for !utf8.ValidString(stem) { // a rune was cut
		stem = stem[:len(stem)-1]
	}
	return stem + ext
}
