package netlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Where a Tributary listens by default: in the client namespace, where nothing else does.
const (
	ProxyAddr = "127.0.0.1:18080"
	AdminAddr = "127.0.0.1:19091"
)

// TributaryOptions specify how the program under test is run.
type TributaryOptions struct {
	Binary    string   // path of the program
	Before    []string // its arguments before serve
	Scheduler string   // "" = the program's default
	Links     []string // for --link; nil = all of the lab
	Args      []string // further arguments of serve, after those above
	UID       int      // user and group that it runs as, without any capability; 0 = root
	Remember  bool     // keep what earlier runs in this lab learned; see Forget
}

// Tributary is a running `tributary serve` in the client namespace.
type Tributary struct {
	lab    *Lab
	cmd    *exec.Cmd
	said   output
	ended  chan struct{} // closed when the process has been waited for
	err    error         // error of the process; valid once ended is closed
	client http.Client
}

// output is the output of a program; it may be written and read at the same time.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// StartTributary starts the program and waits until it listens. It runs until Stop, or until ctx or the lab ends.
func (l *Lab) StartTributary(ctx context.Context, o TributaryOptions) (*Tributary, error) {
	binary, err := filepath.Abs(o.Binary)
	if err == nil && !o.Remember {
		err = l.Forget()
	}
	if err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	args := []string{"serve", "--listen", ProxyAddr, "--admin", AdminAddr}
	if o.Scheduler != "" {
		args = append(args, "--scheduler", o.Scheduler)
	}
	if o.Links == nil {
		o.Links = l.LinkNames()
	}
	for _, name := range o.Links { // the links are TUN devices, which are used only if they are named
		args = append(args, "--link", name)
	}
	argv := slices.Concat([]string{binary}, o.Before, args, o.Args)
	if o.UID != 0 {
		id := strconv.Itoa(o.UID)
		argv = append([]string{
			"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=-all",
			"--bounding-set=-all", "--no-new-privs",
		}, argv...)
	}
	t := &Tributary{lab: l, cmd: l.Client(ctx, argv[0], argv[1:]...), ended: make(chan struct{})}
	t.client.Transport = &http.Transport{DialContext: l.DialContext}
	cert, err := l.Certificate()
	if err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	// its configuration and its control socket are those of this run, not the user's; it trusts only the lab's origins
	t.cmd.Env = append(withoutProxies(os.Environ()), "XDG_RUNTIME_DIR="+l.Dir, "XDG_CONFIG_HOME="+l.Dir, "HOME="+l.Dir,
		"SSL_CERT_FILE="+cert.CA)
	t.cmd.Stdout, t.cmd.Stderr = &t.said, &t.said
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("tributary: %w", err)
	}
	go func() {
		t.err = t.cmd.Wait()
		close(t.ended)
	}()
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	go func() { // do not wait for a program that gives up at once
		select {
		case <-t.ended:
			cancel()
		case <-wait.Done():
		}
	}()
	if err := l.WaitForClient(wait, ProxyAddr); err != nil {
		return nil, errors.Join(err, t.Stop())
	}
	return t, nil
}

// Forget removes what the program learned during its runs in this lab, so that the next run starts cold.
func (l *Lab) Forget() error {
	err := os.Remove(l.History())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// History returns the path of the file in which the program keeps what it learned during its runs in this lab.
func (l *Lab) History() string {
	return filepath.Join(l.Dir, ".local", "state", "tributary", "history")
}

// withoutProxies returns an environment without the variables that name proxies, which the program refuses if they are
// not itself.
func withoutProxies(env []string) []string {
	return slices.DeleteFunc(env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}

// Stop ends the program as an administrator does, by SIGTERM, and returns its output if it fails.
func (t *Tributary) Stop() error {
	t.client.CloseIdleConnections()
	_ = t.Signal(unix.SIGTERM)
	select {
	case <-t.ended:
	case <-time.After(5 * time.Second):
		_ = t.cmd.Cancel()
		<-t.ended
		return fmt.Errorf("tributary: it does not end on SIGTERM: %s", tail(t.said.String()))
	}
	if t.err != nil {
		return fmt.Errorf("tributary: %w: %s", t.err, tail(t.said.String()))
	}
	return nil
}

// Signal sends a signal to the program.
func (t *Tributary) Signal(s syscall.Signal) error { return t.cmd.Process.Signal(s) }

// Wait waits for the program's end and returns its exit code, -1 if a signal ended it.
func (t *Tributary) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-t.ended:
		return t.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("tributary runs on: %w", ctx.Err())
	}
}

// Said returns the program's output so far.
func (t *Tributary) Said() string { return t.said.String() }

// PID is the program's process number.
func (t *Tributary) PID() int { return t.cmd.Process.Pid }

// Admin fetches an admin page, such as "/healthz".
func (t *Tributary) Admin(ctx context.Context, path string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+AdminAddr+path, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := t.client.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("admin: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// Metrics holds the program's metrics, keyed by name and labels as printed: `tributary_link_bans_total{link="wifi"}`.
type Metrics map[string]float64

// Metrics returns all metrics.
func (t *Tributary) Metrics(ctx context.Context) (Metrics, error) {
	status, text, err := t.Admin(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("metrics: status %d", status)
	}
	m := Metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", line, err)
		}
		m[line[:i]] = value
	}
	return m, nil
}

// Received returns the body bytes that arrived over a link, second copies included.
func (m Metrics) Received(link string) int64 {
	return int64(m[`tributary_link_received_bytes_total{link="`+link+`"}`])
}

// Waste returns the body bytes of a link that were second copies or unwanted.
func (m Metrics) Waste(link string) int64 {
	return int64(m[`tributary_link_waste_bytes_total{link="`+link+`"}`])
}

// tail returns the end of a program's output.
func tail(s string) string {
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-2000):]
}
