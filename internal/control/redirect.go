package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// RedirectPath is where connections are asked for that the firewall redirects. A POST opens the listener and is answered
// by a Redirect; the answer goes on until the proxy ends or DELETE is asked for: then whoever asked removes the rules and
// hangs up, for which the proxy waits a moment. When the proxy dies the answer breaks off.
const RedirectPath = "/redirect"

// Redirect tells what the rules must be like.
type Redirect struct {
	Port   uint16 `json:"port"`   // of 127.0.0.1 and ::1: where to redirect to
	IPv6   bool   `json:"ipv6"`   // the port is one of ::1, too
	UID    uint32 `json:"uid"`    // whose connections must not be redirected, unless they are marked
	Marked bool   `json:"marked"` // the proxy's own connections carry redirect.Mark
	PID    int    `json:"pid"`
}

// Lease is the running answer to a POST.
type Lease struct {
	Redirect
	body io.ReadCloser
	rest io.Reader
}

// Ended returns when the rules must go.
func (l *Lease) Ended() {
	var b [1]byte
	_, _ = l.rest.Read(b[:]) // whatever comes, or does not
}

// Close hangs up: the rules are gone.
func (l *Lease) Close() error { return l.body.Close() }

// Redirect opens the listener for redirected connections, until the end of ctx at the latest.
func (c *Client) Redirect(ctx context.Context) (*Lease, error) {
	resp, err := c.redirect(ctx, http.MethodPost)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(resp.Body)
	l := &Lease{body: resp.Body}
	if err := d.Decode(&l.Redirect); err != nil {
		resp.Body.Close()
		return nil, fmt.Errorf("ask the running tributary: %w", err)
	}
	l.rest = resp.Body
	if held, _ := io.ReadAll(d.Buffered()); strings.TrimSpace(string(held)) != "" { // the end is there already
		l.rest = strings.NewReader("")
	}
	return l, nil
}

// Release makes those end who hold a Lease, and waits for them a moment. That no proxy runs is no error.
func (c *Client) Release(ctx context.Context) error {
	resp, err := c.redirect(ctx, http.MethodDelete)
	switch {
	case errors.Is(err, ErrNotRunning):
		return nil
	case err != nil:
		return err
	}
	return resp.Body.Close()
}

func (c *Client) redirect(ctx context.Context, method string) (*http.Response, error) {
	patient := http.Client{Transport: c.http.Transport} // without its limit of time
	resp, err := c.ask(ctx, &patient, method, RedirectPath)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return nil, fmt.Errorf("the running tributary: %s", strings.TrimSpace(string(text)))
	}
	return resp, nil
}
