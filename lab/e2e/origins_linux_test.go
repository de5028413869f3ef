package e2e

import (
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// realSize is the size of the objects that real origins serve.
const realSize = netlab.Bytes(50_000_000)

// TestRealOrigins downloads from the servers that serve most objects, each with almost no configuration.
func TestRealOrigins(t *testing.T) {
	t.Run("nginx", func(t *testing.T) {
		r := start(t, quick())
		o := r.object(realSize)
		r.fetched(o, true, func() { r.download(r.nginx.NamedURL(o), o) })
		r.fetched(o, true, func() { r.absolute(r.nginx.NamedSecureURL(o), o) })
		r.fetched(o, true, func() { r.get(r.nginx.NamedURL(o), o) })
		r.fetched(o, true, func() { r.get(r.nginx.NamedSecureURL(o), o) })
	})
	t.Run("nginx without HTTP/2", func(t *testing.T) {
		r := newRig(t, quick(), netlab.NginxOptions{NoHTTP2: true})
		o := r.object(realSize)
		r.fetched(o, true, func() { r.get(r.nginx.NamedSecureURL(o), o) })
	})
	for _, origin := range origins {
		t.Run(origin.name, func(t *testing.T) {
			need(t, origin.needs[0], origin.needs[1])
			r := start(t, quick())
			origin.run(r)
			o := r.object(realSize)
			url := origin.url("http", o)
			r.fetched(o, origin.ranges, func() { r.download(url, o) })
			if origin.tls {
				url = origin.url("https", o)
				r.fetched(o, origin.ranges, func() { r.absolute(url, o) })
			}
			r.fetched(o, origin.ranges, func() { r.get(url, o) })
		})
	}
}

// fetched runs do, which fetches an object, and fails the test unless both links, or only one, carried a real part of it.
func (r *rig) fetched(o netlab.Object, byBoth bool, do func()) {
	r.Helper()
	names := r.lab.LinkNames()
	before := make([]int64, len(names))
	for i, name := range names {
		_, before[i] = r.carried(name)
	}
	do()
	used := 0
	share := map[string]int64{} // percent
	for i, name := range names {
		_, after := r.carried(name)
		if share[name] = 100 * (after - before[i]) / int64(o.Size); share[name] >= 10 {
			used++
		}
	}
	r.Logf("carried, in percent of the object: %v", share)
	if want := map[bool]int{true: len(names), false: 1}[byBoth]; used != want {
		r.Errorf("%d links carried a real part, want %d", used, want)
	}
}

// absolute downloads an object with a client that requests https URLs in absolute form, and checks its bytes.
func (r *rig) absolute(url string, o netlab.Object) {
	r.Helper()
	d, err := r.lab.Download(r.ctx, netlab.ProxyAddr, url)
	if err != nil || !d.Is(o) {
		r.Errorf("%s: status %d, %d of %d bytes: %v", url, d.Status, d.Bytes, o.Size, err)
	}
}

// get downloads an object with `tributary get` and checks its bytes.
func (r *rig) get(url string, o netlab.Object) {
	r.Helper()
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	file := r.file()
	args := []string{"get", url, "-o", file, "--cacert", cert.CA}
	for _, name := range r.lab.LinkNames() {
		args = append(args, "--link", name)
	}
	r.ok(r.client(r.options.Binary, args...))
	r.isObject(r.read(file), o)
}
