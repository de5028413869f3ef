package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// RedirectPath is the path for requests about redirected connections. A POST sends listening loopback sockets for them,
// one per address family. The sender keeps them open too, so that no other process can take their port while rules lead
// there. The response is a Redirect, followed by another one whenever it changes, one line each, until the proxy ends
// or receives DELETE. Then Over is set: the sender removes the rules and closes the connection, and the proxy waits
// briefly for that and accepts no more connections. If the proxy is killed, the response is cut off.
const RedirectPath = "/redirect"

// Redirect is the proxy's part of the redirect rules.
type Redirect struct {
	Over  bool     `json:"over,omitempty"` // the rules must be removed
	Links []string `json:"links"`          // interfaces over which connections are redirected; others are left alone
	// of these, the ones whose private networks are left alone: VPNs that links go around
	Around []string `json:"around,omitempty"`
	UID    uint32   `json:"uid"`    // user whose connections must not be redirected, unless they are marked
	Marked bool     `json:"marked"` // the proxy's own connections carry redirect.Mark
	PID    int      `json:"pid"`
}

// Lease is the open response to a POST.
type Lease struct {
	conn    net.Conn
	answers *json.Decoder
}

// Next waits until the proxy's part of the rules is known or changes, and returns it. Over is also set when the proxy
// is gone.
func (l *Lease) Next() Redirect {
	var r Redirect
	if err := l.answers.Decode(&r); err != nil {
		return Redirect{Over: true}
	}
	return r
}

// Close closes the connection. The caller must remove the rules first.
func (l *Lease) Close() error { return l.conn.Close() }

// Redirect gives the proxy listeners for redirected connections, until ctx ends at the latest.
func (c *Client) Redirect(ctx context.Context, listeners ...*os.File) (*Lease, error) {
	conn, err := dial(ctx, c.path)
	if err != nil {
		return nil, c.failed(err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	l := &Lease{conn: conn}
	if l.answers, err = post(conn, listeners); err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	return l, nil
}

// post sends the request with the files, and returns a decoder for the answer.
func post(conn net.Conn, listeners []*os.File) (*json.Decoder, error) {
	req, err := http.NewRequest(http.MethodPost, "http://control"+RedirectPath, nil)
	if err != nil {
		return nil, err
	}
	var head strings.Builder
	if err := req.Write(&head); err != nil {
		return nil, err
	}
	fds := make([]int, len(listeners))
	for i, f := range listeners {
		fds[i] = int(f.Fd())
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte(head.String()), unix.UnixRights(fds...), nil); err != nil {
		return nil, fmt.Errorf("ask the running tributary: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return nil, fmt.Errorf("ask the running tributary: %w", err)
	}
	if err := refusal(resp); err != nil {
		return nil, err
	}
	return json.NewDecoder(resp.Body), nil
}

// Release ends all leases and waits briefly for their holders. It is not an error if no proxy runs.
func (c *Client) Release(ctx context.Context) error {
	patient := http.Client{Transport: c.http.Transport} // without the timeout of c.http
	resp, err := c.ask(ctx, &patient, http.MethodDelete, RedirectPath)
	switch {
	case errors.Is(err, ErrNotRunning):
		return nil
	case err != nil:
		return err
	}
	defer resp.Body.Close()
	return refusal(resp)
}

// refusal returns the error that an answer represents, nil if it is not an error.
func refusal(resp *http.Response) error {
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	return fmt.Errorf("the running tributary: %s", strings.TrimSpace(string(text)))
}
