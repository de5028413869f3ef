package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Paths for codes of RPC. The response to a POST is a new code, with which a browser extension can be paired, or the
// address of the live page with such a code.
const (
	PairPath = "/rpc/pair"
	PagePath = "/rpc/page"
)

// ErrNoRPC reports that the running proxy does not serve RPC.
var ErrNoRPC = errors.New(`the running tributary does not serve RPC: add rpc = "127.0.0.1:6800" to its configuration and restart it`)

// Pair requests a code. The error is ErrNotRunning if nothing listens on the socket, and ErrNoRPC if the proxy does not
// serve RPC.
func (c *Client) Pair(ctx context.Context) (code string, err error) { return c.text(ctx, PairPath) }

// Page requests the address of the live page with a code. Its errors are those of Pair.
func (c *Client) Page(ctx context.Context) (url string, err error) { return c.text(ctx, PagePath) }

func (c *Client) text(ctx context.Context, path string) (string, error) {
	resp, err := c.ask(ctx, &c.http, http.MethodPost, path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return "", ErrNoRPC
	}
	if err := refusal(resp); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return "", fmt.Errorf("ask the running tributary: %w", err)
	}
	return string(text), nil
}
