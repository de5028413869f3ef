package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	siteHTML = `<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="stylesheet" href="style.css"></head><body>
%s<script src="more.js"></script><script>onload = () => document.title = "done"</script></body></html>
`
	// siteJS requests more once it is loaded, as the scripts of pages do.
	siteJS = `for (let i = 20; i < 40; i++) document.body.appendChild(new Image()).src = i + ".svg";
`
)

// site makes a page of 2.0 MB: HTML, a style, a script and 40 pictures of 10 to 90 KB. The script requests half of them.
// It returns the page's https URL.
func (r *rig) site() string {
	r.Helper()
	dir := filepath.Join(r.nginx.Root(), "site")
	if err := os.Mkdir(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	padding := func(size int) string { return "/*" + strings.Repeat("-", size) + "*/" }
	var images strings.Builder
	for i := range 40 {
		picture := fmt.Sprintf(pageSVG, i+1) + "<!--" + strings.Repeat(" ", 10_000+i*13%40*2000) + "-->"
		r.write(filepath.Join(dir, strconv.Itoa(i)+".svg"), []byte(picture))
		if i < 20 {
			fmt.Fprintf(&images, "<img src=%d.svg>", i)
		}
	}
	r.write(filepath.Join(dir, "index.html"), fmt.Appendf(nil, siteHTML, images.String()))
	r.write(filepath.Join(dir, "style.css"), []byte(pageCSS+padding(60_000)))
	r.write(filepath.Join(dir, "more.js"), []byte(siteJS+padding(150_000)))
	return "https://" + netlab.OriginName + "/site/index.html"
}

// cold loads a page with new connections and an empty cache, and returns the time from the navigation to the page's load event.
func (b *browser) cold(address string) time.Duration {
	b.Helper()
	b.page = ""
	var profile, target, session struct {
		Context string `json:"browserContextId"`
		Target  string `json:"targetId"`
		Session string `json:"sessionId"`
	}
	b.call("Target.createBrowserContext", nil, &profile)
	b.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": profile.Context}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.Target, "flatten": true}, &session)
	b.page = session.Session
	if html := b.load(address); strings.Count(html, "<img") != 40 {
		b.Errorf("the page lacks images: %s", html)
	}
	var value struct {
		Result struct {
			Value float64 `json:"value"`
		} `json:"result"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": `performance.getEntriesByType("navigation")[0].loadEventStart`}, &value)
	b.page = ""
	b.call("Target.disposeBrowserContext", map[string]any{"browserContextId": profile.Context}, nil)
	return time.Duration(value.Result.Value * float64(time.Millisecond))
}

// down returns how many bytes have entered the links towards the client.
func (r *rig) down() (n int64) {
	r.Helper()
	for _, l := range r.lab.LinkNames() {
		down, _, err := r.lab.Link(l).Counters()
		if err != nil {
			r.Fatal(err)
		}
		n += down.Bytes
	}
	return n
}

// median returns the median of values.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// TestYield: next to a background download of 250 MB, pages load and other downloads run as if it were not there, and it
// uses the rest of the links. Compared values are measured in the same round, in an order drawn at random.
func TestYield(t *testing.T) {
	if !matrix() {
		t.Skip("a measurement of minutes, for make matrix")
	}
	need(t, "chromium", "chromium")
	for _, congestion := range []string{"cubic", "bbr"} {
		for _, way := range []string{"proxy", "get"} {
			t.Run(congestion+", "+way, func(t *testing.T) { yields(t, congestion, way == "get") })
		}
	}
}

// yields measures with a background download that is a separate program if apart is true, and otherwise goes through the
// browser's proxy.
func yields(t *testing.T, congestion string, apart bool) {
	const (
		rounds = 5
		pages  = 3    // of each kind in a round
		pause  = 15e6 // bytes that the background download carries between two pages
		large  = 250_000_000
		normal = 40_000_000
	)
	r := newRig(t, netlab.Scenario{Name: "yield", Congestion: congestion, Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 40*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 20*netlab.Mbit, 50*time.Millisecond),
	}}, netlab.NginxOptions{Directives: "types { text/html html; text/css css; text/javascript js; image/svg+xml svg; }"})
	r.serve()
	page, background, other := r.site(), r.object(large), r.object(normal)
	proxy, err := url.Parse(proxyURL)
	if err != nil {
		t.Fatal(err)
	}
	b := openBrowser(r, "--proxy-server="+proxy.Host, "--ignore-certificate-errors")
	fetch := func() float64 {
		began := time.Now()
		r.ok(r.curl("--fail", "-o", "/dev/null", r.nginx.NamedURL(other)))
		return time.Since(began).Seconds()
	}
	// begin starts the background download and returns a function that ends it.
	begin := func() (end func()) {
		ctx, cancel := context.WithCancel(r.ctx)
		file := r.file()
		cmd := r.lab.Client(ctx, "curl", "-sS", "-x", proxyURL, "-H", "Priority: u=7", "-o", file, r.nginx.NamedURL(background))
		if apart {
			cmd = r.lab.Client(ctx, r.options.Binary, "get", "--background", "--link", "wifi", "--link", "lte", "-o", file, r.nginx.NamedURL(background))
			cmd.Env = append(os.Environ(), "HOME="+r.lab.Dir)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		before := r.down()
		r.until("the background download is under way", func() bool { return r.down() > before+2*pause })
		return func() {
			cancel()
			_ = cmd.Wait() // it is killed
			os.Remove(file)
			r.settle()
		}
	}
	b.cold(page)
	r.settle()

	var size, rate []float64        // of a page, in bytes; of the other download alone, in bytes per second
	var loads, fetches [2][]float64 // alone and beside the background download, in seconds
	var rest, restThen, pageRatio, normalRatio []float64
	type span struct{ bytes, seconds, pages float64 }
	var spans, during []span
	for range rounds {
		var load, fetched [2][]float64
		for _, beside := range rand.Perm(2) {
			end := func() { r.settle() }
			if beside == 1 {
				end = begin()
			}
			all := span{pages: pages}
			began, before := time.Now(), r.down()
			for range pages {
				then, at := r.down(), time.Now()
				load[beside] = append(load[beside], b.cold(page).Seconds())
				if beside == 1 {
					during = append(during, span{float64(r.down() - then), time.Since(at).Seconds(), 1})
					then := r.down()
					r.until("the background download goes on", func() bool { return r.down() > then+pause })
				} else {
					r.settle()
					size = append(size, float64(r.down()-then))
				}
			}
			if beside == 1 {
				all.bytes, all.seconds = float64(r.down()-before), time.Since(began).Seconds()
				spans = append(spans, all)
			}
			then, at := r.down(), time.Now()
			fetched[beside] = append(fetched[beside], fetch())
			if beside == 0 {
				rate = append(rate, float64(r.down()-then)/time.Since(at).Seconds())
			}
			end()
		}
		pageRatio = append(pageRatio, median(load[1])/median(load[0]))
		normalRatio = append(normalRatio, fetched[1][0]/fetched[0][0])
		for i := range load {
			loads[i], fetches[i] = append(loads[i], load[i]...), append(fetches[i], fetched[i]...)
		}
	}
	share := func(s span) float64 {
		others := s.pages * median(size)
		return (s.bytes - others) / (s.seconds*median(rate) - others)
	}
	for _, s := range spans {
		rest = append(rest, share(s))
	}
	for _, s := range during {
		restThen = append(restThen, share(s))
	}
	t.Logf("page: %.2f s alone, %.2f s beside, medians of %d loads; %.3f in the median of %d rounds %.2f", median(loads[0]), median(loads[1]), len(loads[0]), median(pageRatio), rounds, pageRatio)
	t.Logf("the background download takes %.2f of the rest %.2f, and %.2f of it while a page of %.2f MB loads, at %.1f MB/s", median(rest), rest, median(restThen), median(size)/1e6, median(rate)/1e6)
	t.Logf("other download: %.2f s alone, %.2f s beside; %.3f in the median of the rounds %.2f", median(fetches[0]), median(fetches[1]), median(normalRatio), normalRatio)
	if median(pageRatio) > 1.15 {
		t.Errorf("a page takes %.2f times as long", median(pageRatio))
	}
	if median(rest) < 0.8 {
		t.Errorf("the background download gets %.2f of the rest", median(rest))
	}
	if median(normalRatio) > 1.05 {
		t.Errorf("another download takes %.2f times as long", median(normalRatio))
	}
}
