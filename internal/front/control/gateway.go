package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// GatewayPath is the path of the Gateway. A PUT with a JSON list replaces the hosts of the program that the field
// program names.
const GatewayPath = "/gateway"

// Gateway is the gateway of a running proxy, as one program sees it.
type Gateway struct {
	Listen string   `json:"listen"` // "host:port"
	Hosts  []string `json:"hosts"`  // recorded for the program
}

// ErrNoGateway reports that the running proxy has no gateway.
var ErrNoGateway = errors.New(`the running tributary does not serve a gateway: add gateway = "127.0.0.1:8081" to its configuration and restart it`)

// Gateway requests the state of the gateway. The error is ErrNotRunning if nothing listens on the socket, and
// ErrNoGateway if the proxy has no gateway.
func (c *Client) Gateway(ctx context.Context, program string) (Gateway, error) {
	var g Gateway
	resp, err := c.ask(ctx, &c.http, http.MethodGet, gatewayURL(program))
	if err != nil {
		return g, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return g, ErrNoGateway
	}
	if err := refusal(resp); err != nil {
		return g, err
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&g); err != nil {
		return g, fmt.Errorf("ask the running tributary: %w", err)
	}
	return g, nil
}

// RecordHosts replaces the hosts of the gateway for a program; an empty list removes them.
func (c *Client) RecordHosts(ctx context.Context, program string, hosts []string) error {
	text, err := json.Marshal(append([]string{}, hosts...))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://control"+gatewayURL(program),
		bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.failed(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return ErrNoGateway
	}
	return refusal(resp)
}

func gatewayURL(program string) string { return GatewayPath + "?program=" + url.QueryEscape(program) }
