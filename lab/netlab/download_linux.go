package netlab

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Download is a client's view of one download. Times count from the request.
type Download struct {
	Status int
	Bytes  int64         // of the body
	SHA256 string        // of the body, in hex
	Took   time.Duration // until the end of the body
	Reads  []Read
}

// Read is a read by the client that returned bytes of the body.
type Read struct {
	At time.Duration
	N  int
}

// Download fetches a URL from a client in the client namespace, through the proxy at a literal address or, if that is
// "", from the URL's own literal address. If a download ends early, the part received is returned along with the error.
func (l *Lab) Download(ctx context.Context, proxy, url string) (Download, error) {
	var d Download
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return d, fmt.Errorf("download: %w", err)
	}
	req.Close = true
	addr, write := proxy, req.WriteProxy
	if proxy == "" {
		if addr, write = req.URL.Host, req.Write; req.URL.Port() == "" {
			addr += ":80"
		}
	}
	began := time.Now()
	conn, err := l.DialContext(ctx, "tcp", addr)
	if err != nil {
		return d, fmt.Errorf("download: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := write(conn); err != nil {
		return d, fmt.Errorf("download: %w", err)
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), req)
	if err != nil {
		return d, fmt.Errorf("download: %w", err)
	}
	defer res.Body.Close()
	d.Status = res.StatusCode
	sum := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buf)
		d.Took = time.Since(began)
		if n > 0 {
			d.Reads = append(d.Reads, Read{At: d.Took, N: n})
			d.Bytes += int64(n)
			sum.Write(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			d.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return d, nil
		}
		if err != nil {
			return d, fmt.Errorf("download: after %d bytes: %w", d.Bytes, errors.Join(err, ctx.Err()))
		}
	}
}

// Is reports whether the download delivered exactly the object's bytes.
func (d Download) Is(o Object) bool { return d.Bytes == int64(o.Size) && d.SHA256 == o.SHA256 }

// FirstByte returns when the body's first byte arrived, or -1 if none did.
func (d Download) FirstByte() time.Duration { return d.After(0) }

// LongestPause returns the longest time between two successive reads that returned bytes, and when it began.
func (d Download) LongestPause() (pause, began time.Duration) {
	for i := 1; i < len(d.Reads); i++ {
		if p := d.Reads[i].At - d.Reads[i-1].At; p > pause {
			pause, began = p, d.Reads[i-1].At
		}
	}
	return pause, began
}

// After returns the time of the first read at or after t that returned bytes, or -1 if none did.
func (d Download) After(t time.Duration) time.Duration {
	for _, r := range d.Reads {
		if r.At >= t {
			return r.At
		}
	}
	return -1
}
