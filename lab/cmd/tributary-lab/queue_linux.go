package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// queueCommand is a client that opens several connections and lets each take the next range of the object when it has
// finished one, as the clients of Hugging Face and of object stores do.
func queueCommand() *cobra.Command {
	q := queue{}
	var proxy, ca string
	cmd := &cobra.Command{
		Use:    "queue URL",
		Short:  "Download an object by streams that take ranges of it from a queue",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			via, err := url.Parse(proxy)
			if err != nil {
				return err
			}
			pem, err := os.ReadFile(ca)
			if err != nil {
				return err
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(pem)
			f, err := os.Create(q.out)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			q.client = &http.Client{Transport: &http.Transport{
				Proxy: http.ProxyURL(via), MaxIdleConnsPerHost: q.streams,
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
				TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{}, // a connection for each stream
			}}
			return q.download(cmd.Context(), args[0], f)
		},
	}
	f := cmd.Flags()
	f.IntVar(&q.streams, "streams", 16, "connections")
	f.Int64Var(&q.piece, "piece", 1<<20, "bytes in a range")
	f.StringVar(&proxy, "proxy", "", "URL of the proxy")
	f.StringVar(&ca, "cacert", "", "certificate to trust")
	f.StringVar(&q.out, "out", "", "file")
	return cmd
}

// queue downloads an object in ranges.
type queue struct {
	streams int
	piece   int64
	out     string
	client  *http.Client
}

// download writes an object to f.
func (q *queue) download(ctx context.Context, from string, f io.WriterAt) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	size, err := q.fetch(ctx, from, next.Add(q.piece)-q.piece, f)
	if err != nil {
		return err
	}
	var streams sync.WaitGroup
	take := func() {
		for {
			at := next.Add(q.piece) - q.piece
			if at >= size {
				return
			}
			if _, err := q.fetch(ctx, from, at, f); err != nil {
				cancel(err)
				return
			}
		}
	}
	for range q.streams {
		streams.Go(take)
	}
	streams.Wait()
	return context.Cause(ctx)
}

// fetch writes the range that begins at the given offset and returns the size of the object.
func (q *queue) fetch(ctx context.Context, from string, at int64, f io.WriterAt) (size int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, at+q.piece-1))
	resp, err := q.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var first, last int64
	if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil ||
		first != at {
		return 0, fmt.Errorf("%s with Content-Range %q", resp.Status, resp.Header.Get("Content-Range"))
	}
	n, err := io.Copy(io.NewOffsetWriter(f, at), resp.Body)
	if err == nil && n != last-first+1 {
		err = fmt.Errorf("%d bytes of %d", n, last-first+1)
	}
	return size, err
}
