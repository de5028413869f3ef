package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/spf13/cobra"
)

// relayCommand is the plainest possible proxy, against which the processor time of tributary is measured.
func relayCommand() *cobra.Command {
	var listen string
	var splice bool
	cmd := &cobra.Command{
		Use:    "relay",
		Short:  "Pass http requests on by the default route, one after the other",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			addr, err := netip.ParseAddrPort(listen)
			if err != nil || !addr.Addr().IsLoopback() {
				return fmt.Errorf("--listen %s: want a port of a loopback address", listen)
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			return relay(cmd.Context(), l, splice)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:18080", "loopback address and port")
	cmd.Flags().BoolVar(&splice, "splice", false, "let the kernel move the bytes (splice(2)) instead of copying them")
	return cmd
}

// relay serves a listener until ctx ends. A connection carries one request; answers are copied by io.Copy.
func relay(ctx context.Context, l net.Listener, splice bool) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		conns.Go(func() {
			defer client.Close()
			defer context.AfterFunc(ctx, func() { client.Close() })()
			if err := relayOne(ctx, client, splice); err != nil {
				fmt.Fprintf(client, "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n%v\n", err)
			}
		})
	}
}

// relayOne passes a connection's first request on. An error means that no answer was sent to the client yet.
func relayOne(ctx context.Context, client net.Conn, splice bool) error {
	req, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil {
		return err
	}
	addr := req.Host
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(addr, "80")
	}
	origin, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer origin.Close()
	req.Close = true
	if err := req.Write(origin); err != nil {
		return err
	}
	relayCopy(client, origin, splice)
	return nil
}

// relayCopy copies until the end. If the copy breaks off, so does the client's.
func relayCopy(to io.Writer, from io.Reader, splice bool) {
	if !splice {
		from = struct{ io.Reader }{from} // while hidden, the connection cannot be spliced
	}
	_, _ = io.Copy(to, from)
}
