package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/host/partial"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Options control a download.
type Options struct {
	Output     string   // name of the file; "-" = Stdout; "" = from the URL
	Dir        string   // folder of the file; "" = the current one
	ServerName bool     // without Output: the name that the server gives, if any
	Force      bool     // replace an existing file, or a .part that is not resumed
	Resume     bool     // resume a .part
	Mirrors    []string // other URLs of the same object: a .part that one of them delivered belongs to it, too
	Unique     *Unique  // choose another name instead of failing if the file exists; nil = no

	Header         http.Header // fields of the request; see Fields
	AllowDowngrade bool        // follow redirects from https to http
	Dated          bool        // the file gets the time of Last-Modified
	Checksum       *Checksum   // expected checksum of the file; nil = none

	Limit   *Limit // nil = none
	Stdout  io.Writer
	Partial partial.Store // without one, an incomplete download is not kept
}

// Getter downloads objects, each to a file.
type Getter struct {
	// Transport carries the requests. transport.Transport divides them over all links.
	Transport http.RoundTripper
	Options
	// Note passes messages other than progress and errors to the user, such as that a download starts again. May be
	// nil.
	Note func(text string)
}

// Meter is the progress of a running download. Any goroutine may read it.
type Meter struct {
	file   atomic.Pointer[string]
	have   atomic.Int64
	prefix atomic.Int64
	size   atomic.Int64
	kind   atomic.Pointer[string]

	usage transport.Usage
}

// NewMeter returns a meter at zero bytes of an unknown size.
func NewMeter() *Meter {
	m := &Meter{}
	m.size.Store(-1)
	return m
}

// Now returns the name of the file ("" until it is known), the number of bytes in it, and its size (-1 until it is
// known).
func (m *Meter) Now() (file string, have, size int64) {
	if f := m.file.Load(); f != nil {
		file = *f
	}
	return file, m.have.Load(), m.size.Load()
}

// Type returns the media type of the first response, in lower case and without parameters; "" if there is none, or it
// is not known yet.
func (m *Meter) Type() string {
	if t := m.kind.Load(); t != nil {
		return *t
	}
	return ""
}

// Prefix returns how many bytes the file has from its beginning without a gap.
func (m *Meter) Prefix() int64 { return m.prefix.Load() }

// set records how many bytes the file has, and how many of them from its beginning without a gap.
func (m *Meter) set(have, prefix int64) {
	m.have.Store(have)
	m.prefix.Store(prefix)
}

// LinkUse is the contribution of a link to a download.
type LinkUse = transport.LinkUse

// Links returns the traffic of each link so far, in the order of their first bytes.
func (m *Meter) Links() []transport.LinkUse { return m.usage.Links() }

// Result describes a download, complete or not.
type Result struct {
	File     string // "-" = standard output; "" if no name was found
	Size     int64  // bytes of the file
	Resumed  int64  // of these, bytes from an earlier download
	Checksum string // computed checksum, such as "sha256:HEX"; "" if none was requested
	Already  bool   // the file was there: nothing was requested
	Took     time.Duration
	Links    []transport.LinkUse // in the order of their first bytes
	// Undivided is why the last response came over one link, one of the words of pkg/tributary; "" if it was divided.
	Undivided string
}

// Get downloads the object at url. The meter shows the progress; it must be new. An error is an *Error.
func (g *Getter) Get(ctx context.Context, url string, m *Meter) (Result, error) {
	d := newDownload(ctx, g, m)
	return d.measured(func() error { return d.run(url) })
}

// measured runs a download and returns its result, with its duration and the traffic of each link.
func (d *download) measured(run func() error) (Result, error) {
	began := time.Now()
	err := run()
	for _, release := range d.release {
		release()
	}
	if err != nil && d.ctx.Err() != nil {
		err = canceled(err)
	}
	d.result.Took = time.Since(began)
	d.result.Links = d.meter.Links()
	d.result.Undivided = d.meter.usage.Reason()
	return d.result, err
}

// download is the state of one Get or Fill.
type download struct {
	*Getter
	ctx    context.Context
	meter  *Meter
	asked  location // URL that the user gave
	result Result

	nameless bool      // the output has no name, so the server's name is reported
	began    bool      // bytes were received
	modified time.Time // Last-Modified of the first response; zero = none
	restarts int

	release []func() // end what keeps the names of redirects out of local networks
}

func newDownload(ctx context.Context, g *Getter, m *Meter) *download {
	ctx = transport.With(ctx, func(o *transport.Options) { // the user vouches for the credentials
		o.Repeatable, o.Usage = true, &m.usage
	})
	return &download{Getter: g, ctx: ctx, meter: m}
}

// maxRestarts is how often a download may start again because the object or the server changed.
const maxRestarts = 2

func (d *download) run(url string) error {
	var err error
	if d.asked, err = parseLocation(url); err != nil {
		return err
	}
	if err := CheckFields(d.Header); err != nil {
		return &Error{Kind: Usage, Err: err}
	}
	if d.Output == "-" {
		d.named("-")
		return d.fetch(newStream(d.Stdout, d.Checksum))
	}
	if d.Output == "" && d.ServerName {
		return d.fetch(nil)
	}
	name := d.Output
	if name == "" {
		name = d.asked.name()
	}
	out, err := d.open(name)
	if err != nil {
		return d.settled(err)
	}
	return d.fetch(out)
}

// named reports the name of the file.
func (d *download) named(file string) {
	d.result.File = file
	d.meter.file.Store(&file)
}

func (d *download) note(text string) {
	if d.Note != nil {
		d.Note(text)
	}
}

// output is the destination of the bytes.
type output interface {
	io.Writer
	// have returns how many bytes the output has without a gap, and their version. Without a version it cannot be
	// resumed.
	have() (int64, *version)
	// begin empties the output for a version.
	begin(v version) error
	// complete turns the output into the file and returns its checksum, "" if none was requested.
	complete() (sum string, err error)
	// abandon keeps a download that can be resumed, removes the rest, and returns a hint for the user. It does nothing
	// after complete.
	abandon() (advice string)
}

// placed is an output that takes bytes out of order.
type placed interface {
	output
	io.WriterAt // offsets are those of the object
	// advance reports how many bytes from the beginning have been written without a gap.
	advance(size int64) error
}

// scatteredBody is content that can be written in order of arrival, such as that of a transport.Transport.
type scatteredBody interface {
	WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (prefix int64, err error)
}

// version identifies one version of an object.
type version struct {
	validator string // strong, as for If-Range; "" = none
	size      int64  // -1 if unknown
	place     string // where it was found; see location.place. A validator means nothing elsewhere
	mark      string // digest of its other properties; see markOf
}

// fetch fills out. If out is nil, fetch opens an output with the name from the answer.
func (d *download) fetch(out output) (err error) {
	defer func() {
		if out == nil {
			return
		}
		advice := out.abandon()
		if e := (*Error)(nil); errors.As(err, &e) && advice != "" {
			e.Kept = advice
		}
	}()
	for {
		var from int64
		var of *version
		if out != nil {
			from, of = out.have()
		}
		d.meter.set(from, from)
		if of != nil && from == of.size { // all bytes are there; only the completion is missing
			d.meter.size.Store(of.size)
			break
		}
		more, err := d.part(&out, from, of)
		if err != nil {
			return d.settled(err)
		}
		if !more {
			break
		}
	}
	n, _ := out.have()
	d.result.Size = n
	if p, ok := out.(*part); ok && d.Dated {
		p.modified = d.modified
	}
	d.result.Checksum, err = out.complete()
	return err
}

// part requests the rest of the object from an offset and writes it. more reports whether something is still missing.
func (d *download) part(out *output, from int64, of *version) (more bool, err error) {
	resp, at, err := d.ask(from, of)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if *out == nil {
		if *out, err = d.open(serverName(resp.Header, at)); err != nil {
			return false, err
		}
		if have, _ := (*out).have(); have > 0 {
			return true, nil // ask again for the rest
		}
	}
	if d.nameless {
		d.named(serverName(resp.Header, at))
	}
	id := transport.Identify(resp)
	v := version{id.Validator, id.Total, at.place(), markOf(id)}
	if id.Coding != "" {
		v.validator = "" // a coded stream may differ between requests
	}
	d.warn(resp.Header, id.Coding)
	if resp.StatusCode == http.StatusOK && v.size < 0 {
		v.size = resp.ContentLength
	}
	if from > 0 {
		cause := differs(resp, from, *of)
		if cause == "" && of.place != v.place && d.Checksum == nil {
			cause = "the URL now leads to another server or path"
		}
		if cause != "" {
			if d.restarts++; d.restarts > maxRestarts {
				return false, &Error{
					Kind: Server, Outcome: fault.Changed, Err: errors.New(cause + ", repeatedly"),
					Next: "try again later",
				}
			}
			d.note(cause + ": starting again")
			d.result.Resumed = 0
			return true, (*out).begin(version{size: -1})
		}
		v = *of
		if !d.began {
			d.result.Resumed = from
		}
	} else if err := (*out).begin(v); err != nil {
		return false, err
	}
	if p, ok := (*out).(*part); ok {
		if err := p.room(v.size); err != nil {
			return false, err
		}
	}
	if !d.began {
		d.modified, _ = http.ParseTime(resp.Header.Get("Last-Modified"))
	}
	d.began = true
	kind := mediaType(resp.Header)
	d.meter.kind.Store(&kind) // before the size, so that a reader that sees the size sees both
	d.meter.size.Store(v.size)
	return d.copy(*out, resp, v)
}

// pages are the file extensions of HTML pages.
var pages = []string{"", ".html", ".htm", ".xhtml", ".php", ".asp", ".aspx", ".jsp"}

// mediaType returns the media type of an answer, in lower case and without parameters.
func mediaType(h http.Header) string {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// warn reports answers that the user probably does not want.
func (d *download) warn(h http.Header, coding string) {
	if d.began {
		return
	}
	if coding != "" {
		d.note(fmt.Sprintf("the server sends the file with the content coding %q; it is saved in that form", coding))
	}
	if mediaType(h) == "text/html" && !slices.Contains(pages, strings.ToLower(filepath.Ext(d.result.File))) {
		d.note("the server sent an HTML page: check whether it is a login page or an error")
	}
}

// copy writes the content of an answer, in order of arrival if possible.
func (d *download) copy(out output, resp *http.Response, v version) (more bool, err error) {
	from, _ := out.have()
	w := &counted{
		ctx:   d.ctx,
		out:   out,
		from:  from,
		meter: d.meter,
		limit: d.Limit,
	}
	to, placeable := out.(placed)
	body, scattered := resp.Body.(scatteredBody)
	if placeable && scattered {
		w.placed = to
		var prefix int64
		prefix, err = body.WriteAtTo(w, w.progress)
		w.progress(w.n, prefix)
		w.n = prefix
	} else {
		_, err = io.Copy(w, resp.Body)
	}
	have, _ := out.have()
	switch {
	case w.err != nil:
		return false, w.err
	case err != nil:
		return false, broken(err)
	case resp.ContentLength >= 0 && w.n != resp.ContentLength:
		return false, broken(io.ErrUnexpectedEOF)
	case v.size >= 0 && have > v.size:
		return false, &Error{
			Kind: Server, Outcome: fault.BadRange, Err: errors.New("the server sent more bytes than the file has"),
			Next: "try again",
		}
	}
	more = v.size >= 0 && have < v.size // a server may send less than requested
	if more && w.n == 0 {
		return false, broken(io.ErrUnexpectedEOF)
	}
	return more, nil
}

// counted reports written bytes to the meter, and distinguishes errors of the file from those of the network.
type counted struct {
	ctx    context.Context
	limit  *Limit
	out    io.Writer
	placed placed // same as out; nil if bytes arrive in order
	from   int64  // offset of the content in the object
	meter  *Meter
	n      int64 // bytes written
	err    error
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.n += int64(n)
	c.meter.set(c.from+c.n, c.from+c.n)
	c.err = err
	c.limit.wait(c.ctx, n)
	return n, err
}

// WriteAt implements io.WriterAt.
func (c *counted) WriteAt(p []byte, off int64) (int, error) {
	if c.err != nil { // from progress
		return 0, c.err
	}
	n, err := c.placed.WriteAt(p, c.from+off)
	c.err = err
	c.limit.wait(c.ctx, n)
	return n, err
}

// progress records the written bytes.
func (c *counted) progress(written, prefix int64) {
	c.n = written
	c.meter.set(c.from+written, c.from+prefix)
	if err := c.placed.advance(c.from + prefix); c.err == nil {
		c.err = err
	}
}
