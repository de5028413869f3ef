package get

import (
	"context"
	"io"
	"os"

	"github.com/tributary-http/tributary/internal/host/partial"
)

// OpenFile is a file that another program opened, named and keeps: an app whose downloads this program runs. The app
// also has to remember which object and version the bytes belong to.
type OpenFile struct {
	File *os.File
	Version
	Have int64 // bytes of the version in the file, from its beginning without a gap
}

// Version identifies one version of an object.
type Version struct {
	Validator string // strong, as for If-Range; "" = it cannot be resumed
	Size      int64  // -1 = unknown
	Place     string // where it was found: a validator means nothing elsewhere
	Mark      string // digest of its other properties, and which file it was told for
}

// Fill downloads the object at url into h and resumes an earlier download if possible. Fill calls began, which may be
// nil, in its own goroutine each time the file starts over. The result's File is the server's name for the object, ""
// if no response arrived. The meter must be new. When Fill returns, with or without an error, h describes the content
// of the file. An error is an *Error. If a complete file does not have the expected checksum, it is emptied, and the
// next Fill starts over.
func (g *Getter) Fill(ctx context.Context, url string, h *OpenFile, m *Meter,
	began func(name string, v Version),
) (Result, error) {
	d := newDownload(ctx, g, m)
	d.nameless = true
	out := &openOutput{OpenFile: h, download: d, began: began}
	return d.measured(func() (err error) {
		if err = out.check(); err != nil {
			return err
		}
		if d.asked, err = parseLocation(url); err != nil {
			return err
		}
		return d.fetch(out)
	})
}

// openOutput is the output for an OpenFile.
type openOutput struct {
	*OpenFile
	download *download
	began    func(name string, v Version)
}

// check discards what h claims about the file if it was told about another file, or the file's size contradicts it.
func (h *openOutput) check() error {
	info, err := h.File.Stat()
	if err != nil {
		return fileError(err, "the file")
	}
	if _, ok := partial.Unseal(h.File, h.Mark); !ok || h.Have < 0 || h.Have > info.Size() || h.Validator == "" ||
		h.Size >= 0 && h.Have > h.Size {
		h.Have, h.Version = 0, Version{Size: -1}
	}
	return nil
}

// have implements output.
func (h *openOutput) have() (int64, *version) {
	if h.Validator == "" || h.Have == 0 {
		return h.Have, nil
	}
	mark, _ := partial.Unseal(h.File, h.Mark)
	return h.Have, &version{h.Validator, h.Size, h.Place, mark}
}

// begin implements output.
func (h *openOutput) begin(v version) error {
	h.Have, h.Version = 0, Version{v.validator, v.size, v.place, partial.Seal(h.File, v.mark)}
	h.download.meter.set(0, 0)
	h.tell() // before its content is gone
	if err := h.File.Truncate(0); err != nil {
		return fileError(err, "the file")
	}
	return nil
}

// tell reports the version once the answer is known.
func (h *openOutput) tell() {
	if h.began != nil && h.download.result.File != "" {
		h.began(h.download.result.File, h.Version)
	}
}

// Write implements io.Writer.
func (h *openOutput) Write(b []byte) (int, error) {
	n, err := h.WriteAt(b, h.Have)
	h.Have += int64(n)
	return n, err
}

// WriteAt implements placed.
func (h *openOutput) WriteAt(b []byte, off int64) (int, error) {
	n, err := h.File.WriteAt(b, off)
	if err != nil {
		return n, fileError(err, "the file")
	}
	return n, nil
}

// advance implements placed.
func (h *openOutput) advance(size int64) error {
	h.Have = size
	return nil
}

// complete implements output.
func (h *openOutput) complete() (sum string, err error) {
	if err := h.File.Sync(); err != nil {
		return "", fileError(err, "the file")
	}
	want := h.download.Checksum
	if want == nil {
		return "", nil
	}
	got := want.start()
	if _, err := io.Copy(got, &untilDone{h.download.ctx, io.NewSectionReader(h.File, 0, h.Have)}); err != nil {
		return "", fileError(err, "the file")
	}
	if sum, err = want.verify(got); err != nil {
		h.Have, h.Version = 0, Version{Size: -1}
		h.download.meter.set(0, 0)
		err = &Error{
			Kind: Mismatch, Err: err, Host: h.download.asked.url.Host,
			Next: "check the source of the checksum, and download the file again",
		}
	}
	return sum, err
}

// untilDone reads until ctx ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(b)
}

// abandon implements output.
func (h *openOutput) abandon() string {
	_ = h.File.Truncate(h.Have) // only the first Have bytes are valid
	return ""
}
