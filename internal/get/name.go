package get

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// defaultName is the name for URLs whose path ends in a slash.
const defaultName = "index.html"

// maxName is the maximum length of a file's name in bytes, so that it fits with the longest suffix into the 255 bytes of file
// systems.
const maxName = 255 - len(sidecarSuffix+newSuffix)

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

// serverName returns the name from Content-Disposition (RFC 6266), or otherwise from the location of the object.
func serverName(h http.Header, at location) string {
	if _, params, err := mime.ParseMediaType(h.Get("Content-Disposition")); err == nil {
		// Some servers send whole paths, with either separator: RFC 6266 section 4.3 takes the last segment.
		name := params["filename"]
		if i := strings.LastIndexAny(name, `/\`); i >= 0 {
			name = name[i+1:]
		}
		if name != "" {
			return SafeName(name)
		}
	}
	return at.name()
}

// SafeName makes a base name from a server's text or a URL. The name can neither leave the folder nor be hidden in it, and a
// terminal shows it unchanged.
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
	name := strings.TrimSpace(b.String())
	if name == "" || name == "." || name == ".." {
		return defaultName
	}
	if name[0] == '.' || name[0] == '-' { // hidden, or an option of the next command
		name = "_" + name[1:]
	}
	return shorten(name)
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
