package daemon

import (
	"fmt"
	"net"
	"slices"

	"github.com/coreos/go-systemd/v22/activation"
)

// sockets are listeners that systemd opened for this process (sd_listen_fds(3)) and keeps open while it restarts.
// Meanwhile no other process can take the ports that clients know, and their connections wait.
type sockets []net.Listener

// inherited returns the sockets that systemd opened, if any.
func inherited() (sockets, error) {
	all, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("use the sockets from systemd: %w", err)
	}
	if slices.Contains(all, nil) {
		return nil, fmt.Errorf("use the sockets from systemd: one of them does not accept connections: tributary.socket may only have ListenStream=")
	}
	return all, nil
}

// listen returns the inherited listener with this address, or opens a new one.
func (s *sockets) listen(addr string) (net.Listener, error) {
	want, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(*s, func(l net.Listener) bool { return l.Addr().String() == want.String() })
	if i < 0 {
		return net.Listen("tcp", addr)
	}
	l := (*s)[i]
	*s = slices.Delete(*s, i, i+1)
	return l, nil
}

// left returns an error if some sockets were not taken: their clients would wait for an answer that never comes.
func (s sockets) left() error {
	if len(s) == 0 {
		return nil
	}
	return fmt.Errorf("systemd listens on %v, which is not the listen, admin, gateway, rpc or socks address of the configuration: change "+
		"ListenStream= with systemctl edit tributary.socket, or disable the socket: systemctl disable --now tributary.socket (or "+
		"tributary-gateway.socket, tributary-rpc.socket, tributary-socks.socket)", s[0].Addr())
}
