package setup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The scripts that run on the server, and the files that they write there.
var (
	//go:embed common.sh
	common string
	//go:embed install.sh
	install string
	//go:embed remove.sh
	remove string

	//go:embed tributary-relay.service
	service string
	//go:embed tributary-relay.socket
	socket string // the port in it is 443
	//go:embed 90-tributary-relay.conf
	sysctl string
)

// DefaultPort is the port of https: networks that let anything out let this out.
const DefaultPort = 443

// program is the path of the relay's program on the server, as in common.sh.
const program = "/usr/local/bin/tributary-relay"

// Server is a machine that ssh reaches as root.
type Server struct{ sh *shell }

// Open prepares the use of a server. options are for ssh, "KEY=VALUE". The caller must call Close.
func Open(destination string, options []string) (*Server, error) {
	sh, err := openShell(destination, options)
	if err != nil {
		return nil, err
	}
	return &Server{sh}, nil
}

// Close ends the connection.
func (s *Server) Close() { s.sh.close() }

// HostName returns the name or address that ssh connects to.
func (s *Server) HostName(ctx context.Context) (string, error) { return s.sh.hostName(ctx) }

// Install copies a local program file to the server, and starts it as a relay on a port. It replaces an installed
// relay. It returns the output for the user.
func (s *Server) Install(ctx context.Context, binary string, port uint16) (said string, err error) {
	out, err := s.sh.script(ctx, "uname -s -m; id -u")
	if err != nil {
		return "", err
	}
	uname, user, _ := strings.Cut(strings.TrimSpace(lastLines(out, 2)), "\n")
	if user != "0" {
		return "", fmt.Errorf("%s: is not root there (id -u says %q): a relay needs a port and a service",
			s.sh.destination, user)
	}
	if err := fits(binary, uname); err != nil {
		return "", fmt.Errorf("%s: %w", s.sh.destination, err)
	}
	f, err := os.Open(binary)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// Write to a new file: the one in use cannot be written to.
	if _, err := s.sh.run(ctx, f,
		"umask 022 && rm -f "+program+".new && cat > "+program+".new && chmod 755 "+program+".new"); err != nil {
		return "", fmt.Errorf("copy the program: %w", err)
	}
	number := strconv.Itoa(int(port))
	text := common +
		writes("write_service", "service", service) +
		writes("write_socket", "socket", strings.Replace(socket, "ListenStream=443\n", "ListenStream="+number+"\n",
			1)) +
		writes("write_sysctl", "sysctl", sysctl) +
		install
	return s.sh.script(ctx, text, number)
}

// writes returns a shell function that writes a text to the file named by a variable.
func writes(name, variable, text string) string {
	return fmt.Sprintf("%s() { cat >\"$%s\" <<'END_OF_FILE'\n%sEND_OF_FILE\n}\n", name, variable, text)
}

// lastLines returns the last n lines: when a shell starts, it may print lines before them.
func lastLines(s string, n int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(len(all)-n, 0):], "\n")
}

// Invite returns the link of an invitation to the relay on the server, which clients reach at an address. The relay
// forgets the client with the key before; "" = none.
func (s *Server) Invite(ctx context.Context, address, before string) (link string, err error) {
	if before != "" {
		_, _ = s.sh.script(ctx, program+` relay remove -- "$1"`, before) // a new relay does not know this key
	}
	out, err := s.sh.script(ctx, program+` relay pair "$1"`, "'"+address+"'")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "tributary://") {
			link = strings.TrimSpace(line)
		}
	}
	if link == "" {
		return "", errors.New("the relay printed no link")
	}
	return link, nil
}

// Remove removes everything that Install created.
func (s *Server) Remove(ctx context.Context) error {
	_, err := s.sh.script(ctx, common+remove)
	return err
}
