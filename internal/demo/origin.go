package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// origin is an ordinary HTTP server on loopback with one object, which it serves with Range support and a strong ETag.
type origin struct {
	addr   string
	sum    [sha256.Size]byte
	server *http.Server
	done   chan struct{}
}

// newOrigin starts a server with an object of size bytes, whose content is the same at every call.
func newOrigin(size int64) (*origin, error) {
	object := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte([]byte("tributary demo: the same object!"))).Read(object); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the demo's origin: %w", err)
	}
	o := &origin{addr: l.Addr().String(), sum: sha256.Sum256(object), done: make(chan struct{})}
	etag := `"` + hex.EncodeToString(o.sum[:16]) + `"`
	modified := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /object", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", modified, bytes.NewReader(object))
	})
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(o.done)
		if err := o.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the listener is ours and open: this is a bug
		}
	}()
	return o, nil
}

func (o *origin) url() string { return "http://" + o.addr + "/object" }

// close stops the server and waits for it. Handlers end with their connections.
func (o *origin) close() {
	o.server.Close()
	<-o.done
}
