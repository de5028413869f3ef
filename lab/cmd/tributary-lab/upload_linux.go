package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// uploadPort is where the origin of uploads listens, at all addresses of the server.
const uploadPort = 8452

// uploadOrigin is an origin that takes one upload at a time by PUT over TLS. Its listener also speaks MPTCP, as all
// listeners in Go do.
type uploadOrigin struct {
	size    int64
	trusted *x509.CertPool
	server  *http.Server
	served  chan struct{} // closed when server has ended

	connections atomic.Int64

	mu       sync.Mutex
	seen     *observer // observer of the expected upload; nil = uploads are only counted
	received int64
	enough   chan struct{} // closed when size bytes are received; nil = no one waits
	requests []netlab.Request
}

// connectionKey is the context key of a connection's number, for its requests.
type connectionKey struct{}

// startUploads starts an origin of uploads, which ends with the lab, and points the URL of the bed's object there.
func (b *bed) startUploads(cert netlab.Certificate) (*uploadOrigin, error) {
	pem, err := os.ReadFile(cert.CA)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert.Chain, cert.Key)
	if err != nil {
		return nil, err
	}
	u := &uploadOrigin{size: int64(b.object.Size), trusted: x509.NewCertPool()}
	u.trusted.AppendCertsFromPEM(pem)
	var ln net.Listener
	err = b.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp", fmt.Sprintf(":%d", uploadPort))
		return err
	})
	if err != nil {
		return nil, err
	}
	u.server = &http.Server{
		Handler: u, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, u.connections.Add(1))
		},
	}
	u.served = make(chan struct{})
	go func() {
		defer close(u.served)
		_ = u.server.ServeTLS(ln, "", "") // stop ends it
	}()
	b.object.URL = fmt.Sprintf("https://%s:%d/%s", netlab.OriginAddr, uploadPort, b.object.Size)
	return u, nil
}

// stop ends the origin.
func (u *uploadOrigin) stop() {
	u.server.Close()
	<-u.served
}

// expect makes seen observe the uploads that begin from now on; nil ends that.
func (u *uploadOrigin) expect(seen *observer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen = seen
}

// ServeHTTP takes an upload.
func (u *uploadOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	request := netlab.Request{Method: r.Method, Status: http.StatusCreated, Protocol: r.Proto, Began: time.Now()}
	request.Connection, _ = r.Context().Value(connectionKey{}).(int64)
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		request.Client = from.Addr().Unmap().String()
	}
	u.mu.Lock()
	u.requests = append(u.requests, request)
	seen := u.seen
	u.mu.Unlock()
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buf)
		u.note(seen, buf[:n])
		if errors.Is(err, io.EOF) {
			w.WriteHeader(http.StatusCreated)
			return
		}
		if err != nil {
			return // the client is gone
		}
	}
}

// note counts bytes of an upload, and shows them to its observer.
func (u *uploadOrigin) note(seen *observer, p []byte) {
	if len(p) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if seen != nil && seen == u.seen {
		_, _ = seen.Write(p) // it never fails
	}
	if u.received += int64(len(p)); u.enough != nil && u.received >= u.size {
		close(u.enough)
		u.enough = nil
	}
}

// Object returns an error, since an origin of uploads has no objects.
func (u *uploadOrigin) Object(netlab.Bytes) (netlab.Object, error) {
	return netlab.Object{}, errors.New("an origin of uploads has no objects")
}

// Requests returns the uploads that have begun.
func (u *uploadOrigin) Requests() ([]netlab.Request, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests), nil
}

// limit returns the time in which unbounded uploads, one over each of the links at the same moment, sum to the size.
func (u *uploadOrigin) limit(ctx context.Context, links []*netlab.Link) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	enough := make(chan struct{})
	u.mu.Lock()
	u.received, u.enough = 0, enough
	u.mu.Unlock()
	began := time.Now()
	errs := make([]error, len(links))
	var puts sync.WaitGroup
	for i, link := range links {
		puts.Go(func() { errs[i] = u.put(ctx, link) })
	}
	ended := make(chan struct{})
	go func() { defer close(ended); puts.Wait() }()
	select {
	case <-enough:
		took := time.Since(began)
		cancel() // the rest is not needed
		<-ended
		return took, nil
	case <-ended:
		return 0, fmt.Errorf("limit: the uploads ended before the origin had all bytes: %w", errors.Join(errs...))
	}
}

// put uploads over one link until ctx ends.
func (u *uploadOrigin) put(ctx context.Context, link *netlab.Link) error {
	addr := fmt.Sprintf("%s:%d", netlab.OriginAddr, uploadPort)
	raw, err := link.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	c := tls.Client(raw, &tls.Config{RootCAs: u.trusted, ServerName: netlab.OriginAddr.String()})
	w := bufio.NewWriterSize(c, 64<<10)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://"+addr+"/limit",
		netlab.Content(netlab.Bytes(u.size)))
	if err != nil {
		return err
	}
	req.ContentLength = u.size
	if err = req.Write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = http.ReadResponse(bufio.NewReader(c), req) // before the answer the origin may not have everything
	}
	if err != nil {
		return fmt.Errorf("over %s: %w", link.Name, err)
	}
	return nil
}

// reversed returns sc with the two directions of each link exchanged.
func reversed(sc netlab.Scenario) netlab.Scenario {
	sc.Links = slices.Clone(sc.Links)
	for i := range sc.Links {
		l := &sc.Links[i]
		l.Down, l.Up = l.Up, l.Down
	}
	return sc
}
