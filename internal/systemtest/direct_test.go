package systemtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/daemon"
	download "github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// twin fetches the same thing directly, through the proxy and by the downloader of `tributary get`, over one link and over two.
// Each case has its own origin, by its name, so that remembered findings do not affect the next case.
type twin struct {
	t      *testing.T
	server *origintest.Server
	secure *origintest.Secure
	direct [2]*http.Client  // to each node
	fronts map[int]*doorway // by number of links

	faults sync.Map // case -> []origintest.Fault
}

// doorway is a running proxy and a running Transport for downloads.
type doorway struct {
	proxy string // "host:port"
	own   *transport.Transport
}

// newTwin starts an origin of an object. Each case sets its faults with plan.
func newTwin(t *testing.T, o origintest.Object) *twin {
	t.Helper()
	w := &twin{t: t, fronts: map[int]*doorway{}}
	w.server = origintest.New(t, o, func(x *origintest.Exchange) {
		if all, ok := w.faults.Load(strings.TrimPrefix(x.Target, "/")); ok {
			for _, f := range all.([]origintest.Fault) {
				f(x)
			}
		}
	})
	w.secure = w.server.Secure()
	for node := range w.direct {
		tr := &http.Transport{
			DisableCompression: true, ForceAttemptHTTP2: true, IdleConnTimeout: time.Second,
			TLSClientConfig: &tls.Config{RootCAs: w.secure.Roots, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, w.lead(node, addr))
			},
		}
		t.Cleanup(tr.CloseIdleConnections)
		w.direct[node] = &http.Client{
			Transport: tr, Timeout: limit,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	for _, n := range []int{1, 2} {
		w.fronts[n] = w.newFront([]string{"wifi", "lte"}[:n])
	}
	return w
}

// lead returns the destination of a connection to an address of a case over link n.
func (w *twin) lead(n int, addr string) string {
	if strings.HasSuffix(addr, ":443") {
		return w.secure.Addr(n)
	}
	return w.server.Addr(n)
}

func (w *twin) newFront(names []string) *doorway {
	w.t.Helper()
	dial := func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, w.lead(slices.Index(names, l.Name), addr))
	}
	f := &doorway{}
	cfg, log, source := settings(), slog.New(slog.DiscardHandler), discover.NewStatic(link.DialFunc(dial).Over(named(names...)...)...)
	_, proxy, stopProxy, err := daemon.StartWith(context.Background(), cfg, log, transport.Config{Source: source, Roots: w.secure.Roots})
	if err != nil {
		w.t.Fatal(err)
	}
	f.proxy = strings.TrimPrefix(proxy, "http://")
	ctx, cancel := context.WithCancel(context.Background())
	own, err := transport.New(transport.Config{Settings: cfg, Log: log, Source: source, Roots: w.secure.Roots, Allow: transport.Everywhere})
	if err != nil {
		w.t.Fatal(err)
	}
	stop, err := own.Start(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	f.own = own
	w.t.Cleanup(func() {
		cancel()
		within(w.t, "stop of a front", func() { stopProxy(); stop(); own.Close() })
	})
	return f
}

// plan sets the origin's faults in a case, and returns the URL of its object over HTTP/1.1 or 2.
func (w *twin) plan(name string, h2 bool, faults ...origintest.Fault) string {
	w.faults.Store(name, faults)
	return w.url(name, h2)
}

// url returns the URL of a case's object.
func (w *twin) url(name string, h2 bool) string {
	if h2 {
		return "https://" + strings.ReplaceAll(name, ".", "-") + ".secure.test/" + name // one label, for the certificate
	}
	return "http://" + name + ".secure.test/" + name
}

func (f *doorway) byProxy(method, u string, h http.Header) seen {
	return byProxy(f.proxy, method, u, h)
}

// byProxy fetches through a proxy. It requests https URLs in absolute-form, so that the proxy divides these too.
func byProxy(proxy, method, u string, h http.Header) seen {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return seen{err: err}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	r := request(context.Background(), u, h)
	r.Method = method
	if err := r.WriteProxy(c); err != nil {
		return seen{err: err}
	}
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, r)
	for err == nil && resp.StatusCode < 200 { // interim
		resp, err = http.ReadResponse(br, r)
	}
	if err != nil {
		return seen{err: err}
	}
	defer resp.Body.Close()
	s := seen{status: resp.StatusCode, header: resp.Header, length: resp.ContentLength}
	s.body, s.err = io.ReadAll(resp.Body)
	return s
}

// byGet downloads as `tributary get` does. The result is a body with status 200, or an error without a file.
func (f *doorway) byGet(t *testing.T, u string, h http.Header) seen {
	t.Helper()
	dir := t.TempDir()
	h = maps.Clone(h)
	if h == nil {
		h = http.Header{}
	}
	g := download.Getter{Transport: f.own, Options: download.Options{Dir: dir, Output: "file", Header: h}}
	_, err := g.Get(context.Background(), u, download.NewMeter())
	body, readErr := os.ReadFile(filepath.Join(dir, "file"))
	switch {
	case err != nil && readErr == nil:
		t.Errorf("an error, %v, and a file of %d bytes", err, len(body))
	case err == nil && readErr != nil:
		t.Errorf("no error, and no file: %v", readErr)
	case err != nil:
		return seen{err: err}
	}
	return seen{status: http.StatusOK, length: int64(len(body)), body: body}
}

// resumed downloads have bytes of the object at first, and then the rest from u, as `tributary get --resume` does.
func (f *doorway) resumed(t *testing.T, first, u string, h http.Header, have int64) seen {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	held := &download.OpenFile{File: file, Version: download.Version{Size: -1}}
	fill := func(u string) error {
		g := download.Getter{Transport: f.own, Options: download.Options{Header: maps.Clone(h)}}
		_, err := g.Fill(context.Background(), u, held, download.NewMeter(), nil)
		return err
	}
	if err := fill(first); err != nil {
		return seen{err: err}
	}
	held.Have, held.Place = min(have, held.Have), place(u)
	if err := file.Truncate(held.Have); err != nil {
		t.Fatal(err)
	}
	if err := fill(u); err != nil {
		return seen{err: err}
	}
	body := make([]byte, held.Have)
	if _, err := file.ReadAt(body, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return seen{status: http.StatusOK, length: held.Have, body: body}
}

// place returns the place of a case's URL in the form that an OpenFile stores.
func place(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	host, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + map[string]string{"http": ":80", "https": ":443"}[scheme] + "/" + path
}

// visible reports whether a client can see that its request failed.
func (s seen) visible() bool {
	return s.err != nil || s.status >= 500 && strings.HasPrefix(s.header.Get("Proxy-Status"), "tributary; error=")
}

// mayDiffer are the fields that a proxy may change, in addition to those that differ ignores: digests of one message (RFC 9530
// section 2), and Accept-Ranges, which is added to objects requested by range.
var mayDiffer = []string{"Accept-Ranges", "Content-Digest", "Content-Md5"}

// difference describes how an answer differs from that of a direct fetch, "" if in nothing that matters. An origin may serve less
// of a range than was requested; then the proxy may deliver more of it.
func difference(o origintest.Object, direct, got seen) string {
	complete := direct.whole() && got.status == http.StatusOK
	if got.status != direct.status && !complete {
		return fmt.Sprintf("status %d, not %d", got.status, direct.status)
	}
	if !bytes.Equal(got.body, direct.body) && !longer(o, direct, got) {
		return fmt.Sprintf("other bytes: %d, not %d", len(got.body), len(direct.body))
	}
	partly := mayDiffer
	if complete || len(got.body) > len(direct.body) {
		partly = append(slices.Clone(mayDiffer), "Content-Range")
	}
	direct.header, got.header = direct.header.Clone(), got.header.Clone()
	for _, name := range partly {
		direct.header.Del(name)
		got.header.Del(name)
	}
	if d := differ(direct, got); d != "" {
		return d
	}
	if got.length >= 0 && got.length != int64(len(got.body)) && len(got.body) > 0 {
		return fmt.Sprintf("Content-Length %d of %d bytes", got.length, len(got.body))
	}
	return ""
}

// whole reports whether an answer with status 206 contains its whole object. The direct request did not ask for a part, but to a
// ranged request of the proxy this is the right answer, which the proxy turns into a 200.
func (s seen) whole() bool {
	c, err := byterange.ParseContentRange(s.header.Get("Content-Range"))
	return s.status == http.StatusPartialContent && err == nil && c.Range.Start == 0 && c.Range.End == c.Total
}

// longer reports whether two answers are parts of the object with the same beginning, and got is the longer one.
func longer(o origintest.Object, direct, got seen) bool {
	a, errA := byterange.ParseContentRange(direct.header.Get("Content-Range"))
	b, errB := byterange.ParseContentRange(got.header.Get("Content-Range"))
	return errA == nil && errB == nil && a.Range.Start == b.Range.Start && a.Total == b.Total && b.Range.Len() == int64(len(got.body)) &&
		len(got.body) > len(direct.body) && o.Mismatch(got.body, b.Range.Start) < 0
}

// wrongFile describes the error in a file that a download reports as complete, "" if the file equals the whole direct fetch or the
// object.
func wrongFile(o origintest.Object, direct, got seen) string {
	if (direct.status == http.StatusOK || direct.whole()) && bytes.Equal(got.body, direct.body) {
		return ""
	}
	if int64(len(got.body)) == o.Size && o.Mismatch(got.body, 0) < 0 {
		return ""
	}
	return fmt.Sprintf("a file of %d bytes, where a direct fetch brings %v", len(got.body), direct)
}

// partialAnswers returns origins whose answers involve ranges, requested or not.
func partialAnswers(size int64) map[string][]origintest.Fault {
	type f = origintest.Fault
	all := map[string][]f{
		"200": {origintest.NoRanges()}, "200 announces ranges": {origintest.IgnoresRange()}, "honest": {},
		"206 of a middle":              {origintest.Always206(5000, 6000)},
		"206 of the beginning":         {origintest.Always206(0, 1000)},
		"206 of the end":               {origintest.Always206(size-1000, size)},
		"206 of everything":            {origintest.Always206(0, size)},
		"206 of a byte":                {origintest.Always206(0, 1)},
		"206 of all but the last byte": {origintest.Always206(0, size-1)},
		"206 of a middle, gzip":        {origintest.Always206(5000, 6000), origintest.Set("Content-Encoding", "gzip")},
		"206 of everything, gzip":      {origintest.Always206(0, size), origintest.Set("Content-Encoding", "gzip")},
		"gzip for who accepts it":      {origintest.Gzip()},
		"206 of everything, weak":      {origintest.Always206(0, size), origintest.WeakETag()},
		"206 of a middle, multipart":   {origintest.Always206(5000, 6000), origintest.Multipart()},
		"206 without Content-Range":    {origintest.Always206(0, 1000), origintest.NoContentRange()},
		"206 with nonsense":            {origintest.Always206(0, 1000), origintest.ContentRange("bytes x-y/z")},
		"206 with two Content-Ranges":  {origintest.Always206(0, 1000), origintest.Add("Content-Range", fmt.Sprintf("bytes 0-999/%d", size))},
		"206 of an unknown total":      {origintest.Always206(0, 1000), origintest.WrongTotal(-1)},
		"206 of a small total":         {origintest.Always206(0, 1000), origintest.WrongTotal(1000)},
		"206 of a large total":         {origintest.Always206(0, size), origintest.WrongTotal(size + 1)},
		"206 that says 416":            {origintest.Always206(0, 1000), origintest.ContentRange(fmt.Sprintf("bytes */%d", size))},
	}
	ranged := func(r *origintest.Request) bool { return r.Range != "" }
	for name, faults := range map[string][]f{
		"wrong start":           {origintest.WrongStart(7)},
		"earlier start":         {origintest.WrongStart(-7)},
		"end beyond":            {origintest.EndsBeyond(1)},
		"multipart":             {origintest.Multipart()},
		"no Content-Range":      {origintest.NoContentRange()},
		"unknown total":         {origintest.WrongTotal(-1)},
		"wrong total":           {origintest.WrongTotal(size + 5)},
		"caps ranges":           {origintest.CapsRanges(999)},
		"no validator":          {origintest.NoValidator()},
		"400":                   {origintest.Status(400)},
		"403":                   {origintest.Status(403)},
		"416":                   {origintest.Status(416)},
		"500":                   {origintest.Status(500)},
		"501":                   {origintest.Status(501)},
		"304 without condition": {origintest.Status(304)},
		"412 without condition": {origintest.Status(412)},
	} {
		all[name+" for ranges"] = []f{origintest.If(ranged, faults...)}
	}
	for _, code := range []int{204, 304, 401, 403, 404, 410, 412, 416, 429, 451, 503} {
		all[fmt.Sprint(code, " always")] = []f{origintest.Status(code)}
	}
	return all
}

// TestSameAsDirect: however an origin treats ranges, requested or not, a client gets the same as without the proxy, or a
// visible error; a success of `tributary get` is the whole object.
func TestSameAsDirect(t *testing.T) {
	const size = 3*threshold + 77
	w := newTwin(t, origintest.Object{Size: size})
	o := w.server.Object()
	requests := map[string]http.Header{
		"whole":      nil,
		"a middle":   between(4000, 2*threshold+4000),
		"up to end":  get("Range", "bytes=1000-"),
		"everything": get("Range", "bytes=0-"),
	}
	var mu sync.Mutex
	cells, errs := 0, map[string]int{}
	n := 0
	for answer, faults := range partialAnswers(size) {
		for asked, fields := range requests {
			for _, gzip := range []bool{false, true} {
				for _, h2 := range []bool{false, true} {
					n++
					id := fmt.Sprintf("c%d", n)
					t.Run(fmt.Sprintf("R76 R202 %s/%s/gzip=%v/h2=%v", answer, asked, gzip, h2), func(t *testing.T) {
						t.Parallel()
						h := fields.Clone()
						if gzip {
							if h == nil {
								h = http.Header{}
							}
							h.Set("Accept-Encoding", "gzip")
						}
						count := func(how string, direct, got seen) {
							mu.Lock()
							defer mu.Unlock()
							cells++
							if got.visible() && !direct.visible() {
								errs[answer+": "+how]++
							}
						}
						for links, f := range w.fronts {
							u := w.plan(fmt.Sprintf("%s-%d", id, links), h2, faults...)
							direct := fetch(w.direct[0], u, h)
							if direct.err != nil {
								t.Fatalf("directly: %v", direct)
							}
							for _, time := range []string{"first", "again"} {
								got := f.byProxy(http.MethodGet, u, h)
								count("proxy", direct, got)
								if d := difference(o, direct, got); d != "" && !got.visible() {
									t.Errorf("proxy, %d links, %s: %s", links, time, d)
								}
							}
							if asked != "whole" && asked != "up to end" {
								continue
							}
							u = w.plan(fmt.Sprintf("%s-%d-get", id, links), h2, faults...)
							honest := w.plan(fmt.Sprintf("%s-%d-honest", id, links), h2)
							plain := h.Clone()
							plain.Del("Range")
							direct = fetch(w.direct[0], u, plain)
							for _, time := range []string{"first", "again"} {
								var got seen
								if asked == "whole" {
									got = f.byGet(t, u, plain)
								} else {
									got = f.resumed(t, honest, u, plain, 1000)
								}
								count("get", direct, got)
								if d := wrongFile(o, direct, got); d != "" && !got.visible() {
									t.Errorf("get, %s, %d links, %s: %s", asked, links, time, d)
								}
							}
						}
					})
				}
			}
		}
	}
	t.Cleanup(func() {
		t.Logf("%d cells; visible errors where a direct fetch has none:", cells)
		for _, name := range slices.Sorted(maps.Keys(errs)) {
			t.Logf("  %3d %s", errs[name], name)
		}
	})
}

// TestUnjoinable: if an origin's parts do not fit together, the client sees an error once. After that, the object is requested as a
// whole.
func TestUnjoinable(t *testing.T) {
	later := func(r *origintest.Request) bool { return r.Range != "" && !strings.HasPrefix(r.Range, "bytes=0-") }
	for name, fault := range map[string]origintest.Fault{
		"R92 the date is left out of later parts": origintest.Del("Last-Modified"),
		"R96 later parts begin elsewhere":         origintest.WrongStart(1),
		"R105 later parts are refused":            origintest.Status(403),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := origintest.New(t, origintest.Object{Size: mid}, origintest.If(later, fault))
			r := newRig(t, s, settings(), "wifi", "lte")
			if got := r.get(nil); got.err == nil && got.status < 500 {
				t.Errorf("the first time: %v", got)
			}
			whole(t, r.get(nil), s.Object())
		})
	}
}
