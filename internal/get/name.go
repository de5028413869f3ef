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

// defaultName is for URLs whose path ends in a slash.
const defaultName = "index.html"

// maxName is the most bytes of a file's name that leave room for the longest suffix in the 255 that file systems take.
const maxName = 255 - len(sidecarSuffix+newSuffix)

// name returns the name that the last segment of the path gives.
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

// serverName returns the name that Content-Disposition (RFC 6266) gives, otherwise that of the place where the object is.
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

// SafeName makes a base name from a server's text or a URL: the name can neither leave the folder nor hide in it, and a
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

// shorten cuts a name to maxName bytes in front of its extension.
func shorten(name string) string { return shortenTo(name, maxName) }

// shortenTo cuts a name to most bytes.
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
