package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/front/get"
)

// Status is the state of a download.
type Status string

// The states. An active download becomes waiting again when the program ends.
const (
	Active   Status = "active"
	Waiting  Status = "waiting" // for its turn
	Paused   Status = "paused"
	Complete Status = "complete"
	Failed   Status = "error"
	Removed  Status = "removed"
)

// Stopped reports whether the download is over.
func (s Status) Stopped() bool { return s == Complete || s == Failed || s == Removed }

// Order is a request to download an object.
type Order struct {
	GID  string   `json:"gid"`  // 16 hexadecimal digits; "" = a new one
	URLs []string `json:"urls"` // of the same object: if one delivers nothing, the next one is tried
	// folder of the file, absolute or relative to the queue's folder; "" = the queue's folder
	Dir       string   `json:"dir"`
	Out       string   `json:"out"` // name of the file, optionally with folders; "" = the name from the server
	Header    []string `json:"header,omitempty"`
	Referer   string   `json:"referer,omitempty"`
	UserAgent string   `json:"user_agent,omitempty"` // "" = Config.Agent
	Unmetered bool     `json:"unmetered,omitempty"`  // only links that cost nothing may carry it
}

// Download is a snapshot of a download.
type Download struct {
	Order
	Status Status `json:"status"`
	File   string `json:"file,omitempty"` // absolute path; "" until it is known
	Size   int64  `json:"size"`           // bytes; -1 until it is known
	Have   int64  `json:"have"`           // bytes received so far

	Kind    get.Kind `json:"kind,omitempty"` // of an error
	HTTP    int      `json:"http,omitempty"` // status code, if that is the error; otherwise 0
	Message string   `json:"message,omitempty"`

	// Type is the media type from the server, and Shares the traffic of each link, both since the download last became
	// active.
	Type   string        `json:"-"`
	Shares []get.LinkUse `json:"-"`

	Prefix int64    `json:"-"` // of Have, bytes from the beginning without a gap
	Rate   float64  `json:"-"` // bytes per second
	Links  []string `json:"-"` // that have delivered bytes since the download became active
}

// task is a download in the list. Run owns it, except for meter.
type task struct {
	Download
	meter  atomic.Pointer[get.Meter] // of the current attempt
	cancel context.CancelFunc        // of an active download
	want   Status                    // status of an active download once it stops; "" = Waiting, since the program ends
	last   int64                     // bytes at the last tick
}

// now returns a snapshot of the download.
func (t *task) now() Download {
	d := t.Download
	d.URLs, d.Header = slices.Clone(d.URLs), slices.Clone(d.Header)
	d.Prefix = d.Have
	m := t.meter.Load()
	if m != nil {
		d.Type, d.Shares = m.Type(), m.Links()
	}
	if m != nil && t.Status == Active {
		_, have, size := m.Now()
		d.Have, d.Prefix = max(have, 0), m.Prefix()
		if size >= 0 {
			d.Size = size
		}
		for _, l := range m.Links() {
			d.Links = append(d.Links, l.Link)
		}
	}
	return d
}

// gidForm is the form of a GID.
var gidForm = regexp.MustCompile("^[0-9a-f]{16}$")

// check completes an order, or returns an error if it cannot be carried out.
func (q *Queue) check(o Order) (Order, error) {
	o.URLs = slices.DeleteFunc(slices.Clone(o.URLs), func(url string) bool { return get.CheckURL(url) != nil })
	if len(o.URLs) == 0 {
		return o, ErrURLs
	}
	if _, err := fields(o, ""); err != nil {
		return o, err
	}
	if o.GID != "" && !gidForm.MatchString(o.GID) {
		return o, fmt.Errorf("%q is not a GID: want 16 hexadecimal digits", o.GID)
	}
	var err error
	if o.Dir, err = q.folder(o.Dir); err != nil {
		return o, err
	}
	parts := strings.FieldsFunc(o.Out, func(r rune) bool { return r == '/' })
	for i, p := range parts {
		if p == ".." {
			return o, errors.New("the name leads out of the folder: leave .. out")
		}
		parts[i] = get.SafeName(p)
	}
	o.Out = filepath.Join(parts...)
	return o, nil
}

// folder returns the absolute path of a download folder.
func (q *Queue) folder(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(q.Dir, dir)
	}
	if below, err := filepath.Rel(q.Dir, dir); err != nil || !filepath.IsLocal(below) {
		return "", fmt.Errorf("files can only be saved in %s and its subfolders: choose one of these", q.Dir)
	}
	return filepath.Clean(dir), nil
}

// fields returns the header of an order's requests.
func fields(o Order, agent string) (http.Header, error) {
	if o.UserAgent != "" {
		agent = o.UserAgent
	}
	var lines []string
	if o.Referer != "" {
		lines = append(lines, "Referer: "+o.Referer)
	}
	for _, l := range o.Header {
		if !get.Reserved(l) { // such as Connection, which extensions pass on from the browser
			lines = append(lines, l)
		}
	}
	return get.Fields(lines, agent)
}

// newID returns a GID.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Number of attempts after temporary errors, and the wait before the second one. Each further wait is twice as long.
const (
	maxTries  = 5
	retryTime = time.Second
)

// urls returns the URLs of a download in the order in which they are tried: first the one that has delivered something
// before.
func (q *Queue) urls(job Download) []string {
	urls := slices.Clone(job.URLs)
	if i := slices.Index(urls, q.Partial.URL(job.File)); i > 0 {
		urls = slices.Concat(urls[i:i+1], urls[:i], urls[i+1:])
	}
	return urls
}

// download runs a download in a goroutine of its own. It tries the URLs until one delivers something.
func (q *Queue) download(ctx context.Context, t *task, job Download) (get.Result, error) {
	g := &get.Getter{Transport: q.Transport, Options: get.Options{
		Resume:     true,
		ServerName: true,
		Partial:    q.Partial,
		Mirrors:    job.URLs,
		Unique: &get.Unique{
			Taken: func(file string) bool {
				taken := false
				_ = q.ask(ctx, func() error {
					taken = slices.ContainsFunc(q.list(),
						func(o *task) bool { return o != t && !o.Status.Stopped() && o.File == file })
					return nil
				})
				return taken
			},
			Opened: func(file string) error {
				job.File = file
				return q.ask(ctx, func() error {
					t.File, q.dirty = file, true
					return nil
				})
			},
		},
	}}
	if job.Unmetered {
		ctx = q.Free(ctx)
	}
	var err error
	if g.Header, err = fields(job.Order, q.Agent); err != nil {
		return get.Result{}, &get.Error{Kind: get.Usage, Err: err}
	}
	if err := q.makeFolder(job); err != nil {
		return get.Result{}, err
	}
	urls := q.urls(job)
	try, wait, most := 1, retryTime, int64(0)
	for {
		g.Dir, g.Output = job.Dir, job.Out
		if job.File != "" {
			g.Output = job.File
		}
		m := get.NewMeter()
		t.meter.Store(m)
		r, err := g.Get(ctx, urls[0], m)
		e := (*get.Error)(nil)
		if err == nil || ctx.Err() != nil || !errors.As(err, &e) {
			return r, err
		}
		have := m.Prefix()
		if have > most { // there is progress
			most, try, wait = have, 1, retryTime
		}
		try++
		ours := e.Kind == get.File || e.Kind == get.Permission // no other URL helps
		switch {
		// the others may deliver it, if from the beginning
		case !ours && len(urls) > 1 && (have == 0 || !e.Temporary || try > maxTries):
			urls, try, wait, most = urls[1:], 1, retryTime, 0
			continue
		case !e.Temporary, try > maxTries:
			return r, err
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return r, err
		}
	}
}

// makeFolder creates the folder of a download, and ensures that no link below the queue's folder leads out of it.
func (q *Queue) makeFolder(job Download) error {
	file := filepath.Join(job.Dir, job.Out)
	if job.File != "" {
		file = job.File
	}
	dir := filepath.Dir(file)
	if job.File == "" && job.Out == "" {
		dir = job.Dir
	}
	fail := func(err error) error {
		return &get.Error{
			Kind: get.File, Err: fmt.Errorf("create the folder %s: %w", dir, err), Next: "choose another folder",
		}
	}
	if err := os.MkdirAll(q.Dir, 0o755); err != nil {
		return fail(err)
	}
	root, err := os.OpenRoot(q.Dir)
	if err != nil {
		return fail(err)
	}
	defer root.Close()
	below, err := filepath.Rel(q.Dir, dir)
	if err != nil {
		return fail(err)
	}
	if err := root.MkdirAll(below, 0o755); err != nil {
		return fail(err)
	}
	if _, err := root.Stat(below); err != nil { // a link that leads out
		return fail(err)
	}
	return nil
}
