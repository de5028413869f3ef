package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/queue"
	"github.com/tributary-http/tributary/internal/front/rpc"
	"github.com/tributary-http/tributary/internal/host/partial"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// rpcPart holds the parts that exist if the configuration has rpc.
type rpcPart struct {
	queue  *queue.Queue
	server *rpc.Server
}

// RPCToken returns the token that RPC calls need. It is created on first use.
func RPCToken(ctx context.Context) (string, error) {
	return rpc.Token(ctx, statefile.Path(os.Getenv, "rpc-token"))
}

// ServiceRPCToken returns the token in a file of the packaged service, for root.
func ServiceRPCToken(path string) (string, error) { return rpc.ReadToken(path) }

// Pairings returns the extensions that the user has paired.
func Pairings() rpc.Pairings { return rpc.Pairings{Path: statefile.Path(os.Getenv, "rpc-paired.json")} }

// newRPC makes the queue of downloads and the server that answers calls about it.
func (d *Daemon) newRPC() (*rpcPart, error) {
	dir, err := downloadDir(d.cfg)
	if err != nil {
		return nil, err
	}
	token, err := RPCToken(context.Background())
	if err != nil {
		return nil, err
	}
	q := queue.New(queue.Config{
		Transport:     d.out,
		Dir:           dir,
		State:         statefile.Path(os.Getenv, "downloads.json"),
		Partial:       partial.Store(statefile.Path(os.Getenv, "partial")),
		MaxConcurrent: d.cfg.MaxConcurrent,
		Agent:         "tributary/" + d.version,
		Log:           d.log,
		Free: func(ctx context.Context) context.Context {
			return transport.With(ctx, transport.Unmetered)
		},
	})
	var session [20]byte
	rand.Read(session[:]) // never fails
	return &rpcPart{q, rpc.NewServer(rpc.Config{
		Queue:    q,
		Token:    token,
		Version:  d.version,
		Session:  hex.EncodeToString(session[:]),
		Log:      d.log,
		Owner:    d.owner,
		Pairings: Pairings(),
		Origins:  d.cfg.RPCOrigins,
	})}, nil
}

// downloadDir returns the folder for downloads.
func downloadDir(cfg config.Config) (string, error) {
	if cfg.DownloadDir != "" {
		return filepath.Clean(cfg.DownloadDir), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New(`no home folder to download to: set download_dir = "/..." in the configuration`)
	}
	return filepath.Join(home, "Downloads"), nil
}
