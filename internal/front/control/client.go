package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ErrNotRunning reports that no proxy listens on the socket.
//
//lint:ignore ST1005 it begins with a name
var ErrNotRunning = errors.New("Tributary is not running: start it with tributary serve")

// Client sends requests to a running proxy of the same user or of root; see believed.
type Client struct {
	path string
	http http.Client
}

// NewClient returns a client for the socket at path.
func NewClient(path string) *Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
	}
	return &Client{path: path, http: http.Client{Transport: t, Timeout: 5 * time.Second}}
}

// Close closes the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status requests the state of the proxy. The error is ErrNotRunning if nothing listens on the socket.
func (c *Client) Status(ctx context.Context) (Status, error) {
	resp, err := c.ask(ctx, &c.http, http.MethodGet, StatusPath)
	if err != nil {
		return Status{}, err
	}
	defer resp.Body.Close()
	var s Status
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("ask the running tributary: status %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&s); err != nil {
		return s, fmt.Errorf("ask the running tributary: %w", err)
	}
	return s, nil
}

// ask sends a request. The error is ErrNotRunning if nothing listens on the socket.
func (c *Client) ask(ctx context.Context, by *http.Client, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := by.Do(req)
	if err != nil {
		return nil, c.failed(err)
	}
	return resp, nil
}

// failed returns the error of a request that got no answer.
func (c *Client) failed(err error) error {
	var stranger *strangerError
	switch {
	case errors.As(err, &stranger):
		return stranger
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w (nothing listens on %s)", ErrNotRunning, c.path)
	}
	return fmt.Errorf("ask the running tributary: %w", err)
}
