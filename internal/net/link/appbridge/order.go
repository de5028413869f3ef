package appbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/tributary-http/tributary/internal/host/rights"
)

// maxOrders is the number of orders that may be open: each has a file and a connection.
const maxOrders = 64

// Order is a file that the app wants filled, and the connection for reporting progress to the app.
type Order struct {
	File      *os.File `json:"-"`
	URL       string   `json:"url"`
	Have      int64    `json:"have"`      // bytes of the version below that the file holds, from its beginning
	Validator string   `json:"validator"` // "" = none: the file is filled from the beginning
	Size      int64    `json:"size"`
	Place     string   `json:"place"` // where that version was found, as last reported
	Mark      string   `json:"mark"`  // of that version, as last reported
	// Unmetered means that only links that cost nothing may carry the download.
	Unmetered bool     `json:"unmetered"`
	Checksum  string   `json:"checksum"` // checksum that the complete file must have, like "sha256:HEX"; "" = any
	Header    []string `json:"header"`   // lines "Name: value", for the requests; they may be secret

	conn *net.UnixConn
	stop chan struct{}
	done chan struct{} // closed when the reader of conn has ended
	free func()
}

// Orders returns a channel of the files that the app wants filled. The receiver closes each.
func (h *Bridge) Orders() <-chan *Order { return h.orders }

// take opens a connection for an order of the app, and passes the order on.
func (h *Bridge) take(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), replyTime)
	defer cancel()
	o, err := h.receive(ctx, id)
	if err != nil {
		h.log.Warn("refused a download of the app", "error", err)
		h.places.Add(-1)
		return
	}
	o.free = func() { h.places.Add(-1) }
	select {
	case h.orders <- o:
	case <-h.gone:
		o.Close()
	}
}

// receive asks for an order and its file.
func (h *Bridge) receive(ctx context.Context, id uint64) (*Order, error) {
	c, err := open(ctx, h.path, hello{Type: "hello", Version: Version, Channel: channelFetch, ID: id})
	if err != nil {
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(replyTime))
	line, file, err := readOrder(c)
	o := &Order{Size: -1}
	if err == nil {
		err = json.Unmarshal(line, o)
	}
	switch {
	case err != nil:
	case file == nil:
		err = errors.New("the order has no file")
	case o.URL == "":
		err = errors.New("the order has no URL")
	default:
		_ = c.SetReadDeadline(time.Time{})
		o.File, o.conn, o.stop, o.done = file, c, make(chan struct{}), make(chan struct{})
		go o.listen()
		return o, nil
	}
	if file != nil {
		file.Close()
	}
	c.Close()
	return nil, fmt.Errorf("order %d: %w", id, err)
}

// readOrder reads a line and the descriptor that arrives with it.
func readOrder(c *net.UnixConn) (line []byte, file *os.File, err error) {
	b, oob := make([]byte, 4<<10), make([]byte, rights.Space(4))
	for {
		n, m, _, _, err := c.ReadMsgUnix(b, oob)
		if err != nil {
			return nil, file, err
		}
		if n == 0 {
			return nil, file, errors.New("unexpected end of message")
		}
		for _, f := range rights.Files(oob[:m]) {
			if file != nil {
				f.Close()
				continue
			}
			file = f
		}
		line = append(line, b[:n]...)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			return line[:i], file, nil
		}
		if len(line) > maxLine {
			return nil, file, errors.New("message too long")
		}
	}
}

// listen returns when the app stops the order by closing its side, or all of the connection.
func (o *Order) listen() {
	defer close(o.done)
	defer close(o.stop)
	b := make([]byte, 256)
	for {
		if _, err := o.conn.Read(b); err != nil { // messages received meanwhile belong to a later version
			return
		}
	}
}

// Stop returns a channel that is closed when the app stops the order.
func (o *Order) Stop() <-chan struct{} { return o.stop }

// Tell reports progress to the app. An error means that nobody receives it.
func (o *Order) Tell(m any) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_ = o.conn.SetWriteDeadline(time.Now().Add(replyTime))
	_, err = o.conn.Write(append(line, '\n'))
	return err
}

// Close closes the file and the connection.
func (o *Order) Close() {
	o.File.Close()
	o.conn.Close()
	<-o.done
	o.free()
}
