package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Proxy starts a proxy that uses the links, and returns its URL. Calling stop ends it and waits for it.
type Proxy func(ctx context.Context, links []link.Link) (proxyURL string, stop func(), err error)

// limit is the maximum duration of a demo.
const limit = 58 * time.Second

// Run shows the demo on out. It returns an error if a download fails or delivers wrong bytes.
func Run(ctx context.Context, out io.Writer, start Proxy) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		errors.New("the demo took too long: try again when this machine is less busy"))
	defer cancel()
	return show{
		size:  24e6,
		wifi:  shape{name: "wifi", rate: 40e6 / 8, delay: 15 * time.Millisecond},
		lte:   shape{name: "lte", rate: 25e6 / 8, delay: 40 * time.Millisecond},
		start: start,
	}.run(ctx, out)
}

// show holds the parameters of a demo.
type show struct {
	size      int64 // size of the object in bytes
	wifi, lte shape
	start     Proxy
}

// stage holds the origin and the links to it.
type stage struct {
	origin *origin
	links  []*relay
}

func (s show) run(ctx context.Context, out io.Writer) error {
	o, err := newOrigin(s.size)
	if err != nil {
		return err
	}
	defer o.close()
	st := stage{origin: o}
	for _, sh := range []shape{s.wifi, s.lte} {
		r, err := newRelay(sh, o.addr)
		if err != nil {
			return err
		}
		defer r.close()
		st.links = append(st.links, r)
	}
	wifi, lte := st.links[0], st.links[1]

	p := printer{out: out}
	p.intro(s, o)
	rows := []struct {
		title string
		fetch func() (download, error)
	}{
		{wifi.name + " alone, without Tributary", func() (download, error) { return st.alone(ctx, wifi) }},
		{lte.name + " alone, without Tributary", func() (download, error) { return st.alone(ctx, lte) }},
		{"both, through Tributary", func() (download, error) { return st.both(ctx, s.start, nil) }},
		{"both, " + wifi.name + " dies half-way", func() (download, error) {
			return st.both(ctx, s.start, func(n int64) {
				if n >= s.size/2 {
					wifi.kill()
				}
			})
		}},
	}
	var results []result
	for i, row := range rows {
		p.begin(i+1, len(rows), row.title)
		before := []int64{wifi.carried.Load(), lte.carried.Load()}
		d, err := row.fetch()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("download %d (%s): %w", i+1, row.title, err)
		}
		r := result{title: row.title, download: d, right: d.sum == o.sum && d.bytes == s.size}
		for j, l := range st.links {
			r.carried = append(r.carried, l.carried.Load()-before[j])
		}
		results = append(results, r)
		p.end(d)
	}
	p.table(st.links, results)
	for _, r := range results {
		if !r.right {
			return fmt.Errorf("%s: the bytes differ from the origin's", r.title)
		}
	}
	p.closing(st.links, results)
	return p.err
}

// alone fetches the object with one plain GET over the link.
func (st stage) alone(ctx context.Context, l *relay) (download, error) {
	return fetch(ctx, &http.Transport{DialContext: l.dial, DisableCompression: true}, st.origin.url(), nil)
}

// both fetches the object through a new proxy with all links.
func (st stage) both(ctx context.Context, start Proxy, progress func(int64)) (download, error) {
	links := make([]link.Link, len(st.links))
	for i, l := range st.links {
		links[i] = link.Link{Name: l.name, Kind: l.name, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	}
	links[1].Kind = "cellular"
	proxy, stop, err := start(ctx, link.DialFunc(st.dial).Over(links...))
	if err != nil {
		return download{}, fmt.Errorf("start the proxy: %w", err)
	}
	defer stop()
	u, err := url.Parse(proxy)
	if err != nil {
		return download{}, fmt.Errorf("address of the proxy: %w", err)
	}
	return fetch(ctx, &http.Transport{Proxy: http.ProxyURL(u), DisableCompression: true}, st.origin.url(), progress)
}

// dial connects over a link on behalf of the proxy.
func (st stage) dial(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
	for _, r := range st.links {
		if r.name == l.Name {
			return r.dial(ctx, network, addr)
		}
	}
	return nil, fmt.Errorf("unknown emulated link %q", l.Name)
}
