package netlab

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Limit measures the bundling limit. It starts one unbounded GET over each of the links at the same moment, each on a
// fresh connection, and returns the time until their bodies sum to size; then it closes them all. An https URL is
// fetched with HTTP/1.1 over TLS. Call Fresh before it.
func (l *Lab) Limit(ctx context.Context, rawURL string, size Bytes, links ...*Link) (time.Duration, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0, fmt.Errorf("limit: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sum atomic.Int64
	var took time.Duration // written by the goroutine whose bytes complete the sum
	errs := make([]error, len(links))
	var gets sync.WaitGroup
	began := time.Now()
	for i, link := range links {
		gets.Go(func() {
			errs[i] = link.get(ctx, u, func(n int) {
				if s := sum.Add(int64(n)); s >= int64(size) && s-int64(n) < int64(size) {
					took = time.Since(began)
					cancel()
				}
			})
		})
	}
	gets.Wait()
	if sum.Load() < int64(size) {
		return 0, fmt.Errorf("limit: %d of %d bytes came: %w", sum.Load(), size, errors.Join(errs...))
	}
	return took, nil
}

// get fetches u over the link until its end or the end of ctx, and reports the length of each part of the body.
func (l *Link) get(ctx context.Context, u *url.URL, received func(n int)) error {
	host, port := u.Hostname(), u.Port()
	if host == OriginName {
		host = OriginAddr.String()
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := l.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if u.Scheme == "https" {
		trusted, err := l.lab.trusted()
		if err != nil {
			return err
		}
		conn = tls.Client(conn, &tls.Config{RootCAs: trusted, ServerName: host})
	}
	req := &http.Request{
		Method: http.MethodGet,
		URL:    u,
		Host:   u.Host,
		Header: http.Header{},
		Close:  true,
	}
	if err := req.Write(conn); err != nil {
		return fmt.Errorf("over %s: %w", l.Name, err)
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), req)
	if err != nil {
		return fmt.Errorf("over %s: %w", l.Name, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("over %s: status %s", l.Name, res.Status)
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := res.Body.Read(buf)
		received(n)
		if err != nil {
			return nil // the sum shows whether the end came too early
		}
	}
}
