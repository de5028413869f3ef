package use

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Held returns an error if another user could listen on the gateway's port, now or while the proxy does not run.
// Programs send passwords there, and run what they get from there. No other user can if the port is privileged, or if
// systemd holds it from the start of the machine on: the system's manager does, and a user's own one if it lingers.
func (s Settings) Held(ctx context.Context) error {
	_, text, err := net.SplitHostPort(s.Gateway)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if port < s.unprivileged() {
		return nil
	}
	if s.holds(ctx, "--system") {
		return nil
	}
	const free = "while the proxy does not run, any user of this machine can take port %d, and gets the passwords and answers the requests " +
		"of programs that use it: "
	if s.UID != 0 && s.holds(ctx, "--user") {
		if s.lingers() {
			return nil
		}
		return fmt.Errorf("while you are logged out, any user of this machine can take port %d, and answers your programs later: "+
			"run loginctl enable-linger, or use --force if nobody else uses this machine", port)
	}
	if s.UID != 0 {
		return fmt.Errorf(free+"let systemd hold it (systemctl --user enable tributary-gateway.socket, then systemctl --user restart tributary, "+
			"and loginctl enable-linger; without --user for the system's proxy), or use --force if nobody else uses this machine", port)
	}
	return fmt.Errorf(free+"let systemd hold it (systemctl enable tributary-gateway.socket, then systemctl restart tributary), "+
		"choose a port below %d, or use --force if nobody else uses this machine", port, s.unprivileged())
}

// unprivileged returns the first port that every user may listen on.
func (s Settings) unprivileged() int {
	const usual = 1024
	text, err := os.ReadFile(s.system("/proc/sys/net/ipv4/ip_unprivileged_port_start"))
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return usual
	}
	return n
}

// holds reports whether a socket unit of a manager listens on the gateway's address, and will after a restart of the
// machine. Only root changes units of the system, and only the user those of the user's own manager.
func (s Settings) holds(ctx context.Context, manager string) bool {
	systemctl := func(args ...string) []string {
		c := exec.CommandContext(ctx, "systemctl", append([]string{manager, "--no-pager"}, args...)...)
		c.Env = append(os.Environ(), "LC_ALL=C")
		out, err := c.Output()
		if err != nil {
			return nil // there is no systemd
		}
		return strings.Split(string(out), "\n")
	}
	addresses := []string{s.Gateway}
	if port, ok := strings.CutPrefix(s.Gateway, "localhost:"); ok { // programs may ask either address
		addresses = []string{"127.0.0.1:" + port, "[::1]:" + port}
	}
	for _, line := range systemctl("list-sockets", "--no-legend", "--plain", "--full") {
		f := strings.Fields(line)
		if len(f) < 2 || !slices.Contains(addresses, f[0]) {
			continue
		}
		state := systemctl("show", "--property=ActiveState", "--property=UnitFileState", f[1])
		if slices.Contains(state, "ActiveState=active") && slices.Contains(state, "UnitFileState=enabled") {
			addresses = slices.DeleteFunc(addresses, func(a string) bool { return a == f[0] })
		}
	}
	return len(addresses) == 0
}

// lingers reports whether the user's service manager runs from the start of the machine on, whoever is logged in.
func (s Settings) lingers() bool {
	u, err := user.LookupId(strconv.Itoa(s.UID))
	if err != nil {
		return false
	}
	_, err = os.Stat(s.system(filepath.Join("/var/lib/systemd/linger", u.Username)))
	return err == nil
}
