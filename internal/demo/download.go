package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"time"
)

// download is the result of one GET.
type download struct {
	took  time.Duration // time from the request to the last byte
	pause time.Duration // the longest time between two reads of the body
	bytes int64
	sum   [sha256.Size]byte
}

// fetch GETs url over t and calls progress, if not nil, with the bytes received so far.
func fetch(ctx context.Context, t *http.Transport, url string, progress func(int64)) (download, error) {
	defer t.CloseIdleConnections()
	var d download
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return d, err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return d, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return d, fmt.Errorf("answer %s", resp.Status)
	}

	hash := sha256.New()
	buf := make([]byte, 64<<10)
	last := time.Now()
	for {
		n, err := resp.Body.Read(buf)
		now := time.Now()
		d.pause = max(d.pause, now.Sub(last))
		last = now
		hash.Write(buf[:n])
		d.bytes += int64(n)
		if progress != nil {
			progress(d.bytes)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return d, fmt.Errorf("after %d bytes: %w", d.bytes, err)
		}
	}
	d.took = time.Since(start)
	hash.Sum(d.sum[:0])
	return d, nil
}
