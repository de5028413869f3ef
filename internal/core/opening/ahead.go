package opening

import (
	"path"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

const (
	// aheadSize is the length in bytes of a range requested before the first response. It is small in case the range is
	// not needed.
	aheadSize = 64 << 10

	// aheadSizeKnown is that length if the size of the object is known, and mostAhead is the maximum number of links
	// then used.
	aheadSizeKnown = 128 << 10
	mostAhead      = 8
)

// archives lists the extensions of files that are usually worth several links: packages, disk images, models, films.
var archives = []string{
	".7z", ".aab", ".apk", ".appimage", ".bin", ".bz2", ".cab", ".crate", ".deb", ".dmg", ".exe", ".flac", ".flatpak",
	".gguf", ".gz", ".img", ".iso", ".jar", ".mkv", ".mov", ".mp4", ".msi", ".onnx", ".parquet", ".pkg", ".pt",
	".qcow2", ".rar", ".rpm", ".safetensors", ".snap", ".squashfs", ".tar", ".tgz", ".vhdx", ".vmdk", ".wav", ".webm",
	".whl", ".xz", ".zip", ".zst",
}

// ahead returns the range to request on other links before the first response arrives, and the bytes of it for each
// link (Nikravesh 2018 section 6.3.3, known file size). The range is for several links if the size of the object is
// known, otherwise for one. Only the first bytes of a probably large object are worth the risk, and only for a plain
// request: with a condition, the response may have no content.
func (o *Opening) ahead() (r segment.Range, each int64) {
	file, _, query := strings.Cut(o.path, "?")
	hint := o.memory.Size
	switch {
	case !o.plan.Warm, o.repeated, o.ifRange != "" && hint == 0:
		return r, 0
	case slices.ContainsFunc(conditions, func(name string) bool { return len(o.fields[name]) > 0 }):
		return r, 0
	case o.memory.Refuses, query && !o.memory.Sure: // the query may be valid only once, or only for its first user
		return r, 0
	case hint == 0 && !slices.Contains(archives, strings.ToLower(path.Ext(file))):
		return r, 0
	}
	each, links := int64(aheadSize), int64(1)
	if hint > 0 {
		each, links = aheadSizeKnown, mostAhead
	}
	start := o.plan.Requested.Start + o.threshold
	end := start + links*each
	if hint > 0 {
		end = min(end, hint)
	}
	if o.plan.Requested.End != transfer.Unknown {
		end = min(end, o.plan.Requested.End)
	}
	if rest := (end - start) % each; rest < each/4 { // the rest is not worth a request
		end -= rest
	}
	if end <= start {
		return r, 0
	}
	return segment.Range{Start: start, End: end}, each
}
