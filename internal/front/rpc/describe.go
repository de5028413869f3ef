package rpc

import (
	"encoding/hex"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/front/queue"
)

// pieceLength is the number of bytes that one bit of the bitfield stands for.
const pieceLength = 1 << 20

// ownKey is the key of the details of a download that aria2 does not have; they are sent only on request.
const ownKey = "tributary"

// describeAll describes downloads.
func describeAll(all []queue.Download, keys []string) []map[string]any {
	list := []map[string]any{}
	for _, d := range all {
		list = append(list, describe(d, keys))
	}
	return list
}

// describe describes a download as tellStatus does, limited to the given keys; none = all.
func describe(d queue.Download, keys []string) map[string]any {
	wants := func(key string) bool { return len(keys) == 0 || slices.Contains(keys, key) }
	all := map[string]any{}
	put := func(key string, value func() any) {
		if wants(key) {
			all[key] = value()
		}
	}
	text := func(key, value string) { put(key, func() any { return value }) }
	size := max(d.Size, 0)
	pieces := (size + pieceLength - 1) / pieceLength
	text("gid", d.GID)
	text("status", string(d.Status))
	text("totalLength", number(size))
	text("completedLength", number(d.Have))
	text("uploadLength", "0")
	text("downloadSpeed", number(int64(d.Rate)))
	text("uploadSpeed", "0")
	text("connections", number(int64(len(d.Links))))
	text("pieceLength", number(pieceLength))
	text("numPieces", number(pieces))
	text("dir", d.Dir)
	put("files", func() any { return files(d) })
	if pieces > 0 {
		put("bitfield", func() any { return bitfield(d.Prefix, size, pieces) })
	}
	if slices.Contains(keys, ownKey) { // aria2 has none of this
		links := []any{}
		for _, l := range d.Shares {
			links = append(links, map[string]string{"link": l.Link, "bytes": number(l.Bytes)})
		}
		all[ownKey] = map[string]any{"type": d.Type, "links": links}
	}
	if d.Status.Stopped() {
		text("errorCode", number(int64(errorCode(d))))
		text("errorMessage", d.Message)
	}
	return all
}

// bitfield returns one bit for each piece, the first one highest, in hexadecimal digits. A bit is set if its piece is
// complete.
func bitfield(prefix, size, pieces int64) string {
	b := make([]byte, (pieces+7)/8)
	whole := prefix / pieceLength
	if prefix == size {
		whole = pieces
	}
	for i := range whole {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return hex.EncodeToString(b)
}

// files describes the file of a download.
func files(d queue.Download) any {
	file := d.File
	if file == "" && d.Out != "" {
		file = filepath.Join(d.Dir, d.Out)
	}
	return []any{map[string]any{
		"index": "1", "path": file, "length": number(max(d.Size, 0)), "completedLength": number(d.Have),
		"selected": "true",
		"uris":     uris(d),
	}}
}

// uris describes the URLs of a download.
func uris(d queue.Download) any {
	list := []any{}
	for i, u := range d.URLs {
		status := "waiting"
		if i == 0 && (d.Status == queue.Active || d.Status.Stopped() || d.File != "") {
			status = "used"
		}
		list = append(list, map[string]string{"uri": u, "status": status})
	}
	return list
}

// Error codes of aria2 (aria2c(1), EXIT STATUS).
const (
	codeNone          = 0
	codeUnknown       = 1
	codeNotFound      = 3
	codeNetwork       = 6
	codeNoSpaceOrFile = 16
	codeHTTP          = 22
	codeUnauthorized  = 24
	codeOverloaded    = 29
	codeRemoved       = 31
)

// errorCode returns the code for the end of a download.
func errorCode(d queue.Download) int {
	switch {
	case d.Status == queue.Complete:
		return codeNone
	case d.Status == queue.Removed:
		return codeRemoved
	}
	switch d.HTTP {
	case 0:
	case http.StatusNotFound, http.StatusGone:
		return codeNotFound
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return codeUnauthorized
	case http.StatusServiceUnavailable:
		return codeOverloaded
	default:
		return codeHTTP
	}
	switch d.Kind {
	case get.Network, get.Trust:
		return codeNetwork
	case get.File, get.Permission:
		return codeNoSpaceOrFile
	}
	return codeUnknown
}
