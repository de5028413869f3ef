package control

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The users in these tests.
const (
	alice   = 65534
	mallory = 65533
)

// TestMain is also a server of another user: it listens on the socket in TRIBUTARY_CONTROL, prints that it does, and prints each
// request that it gets, until its input ends.
func TestMain(m *testing.M) {
	path := os.Getenv("TRIBUTARY_CONTROL")
	if path == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println(r.Method, r.URL.Path)
			_ = json.NewEncoder(w).Encode(Status{Version: "mallory's"})
		}))
	}()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// serveAs starts a server of another user at path. stop ends the server and returns the requests that it got.
func serveAs(t *testing.T, uid uint32, path string) (stop func() (asked string)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), "TRIBUTARY_CONTROL="+path, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("run this program as another user: %v", err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "listening\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return func() string {
		in.Close()
		var all strings.Builder
		_, _ = said.WriteTo(&all)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		return all.String()
	}
}

// TestServerOfAnotherUser: no request is sent to a socket of another user, whatever its place.
func TestServerOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to run a program as another user")
	}
	for name, c := range map[string]struct {
		owner int
		mode  os.FileMode
		asked bool
	}{
		"in a folder of everybody's":                   {0, 0o777, false},
		"in a folder like /tmp":                        {0, 0o777 | os.ModeSticky, false},
		"in a third user's folder":                     {alice, 0o777, false},
		"in its own folder, which others may write to": {mallory, 0o777, false},
		// As for the system service, and for the proxy of a user who calls sudo.
		"in its own folder": {mallory, 0o755, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, err := range []error{
				os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, c.mode), os.Chown(dir, c.owner, c.owner),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, "s")
			stop := serveAs(t, mallory, path)
			client := NewClient(path)
			defer client.Close()
			s, err := client.Status(t.Context())
			if c.asked {
				if asked := stop(); err != nil || s.Version != "mallory's" || asked != "GET /status\n" {
					t.Errorf("%+v, %v, asked for %q", s, err, asked)
				}
				return
			}
			_, rerr := client.Redirect(t.Context())
			for _, err := range []error{err, rerr, client.Release(t.Context())} {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("user %d", mallory)) || !strings.Contains(err.Error(), path) {
					t.Errorf("error %v", err)
				}
			}
			if asked := stop(); asked != "" || s.Version != "" {
				t.Errorf("asked for %q, %+v", asked, s)
			}
		})
	}
}

func TestBelieved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to make a folder of another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, mallory, mallory); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		server, own uint32
		folder      string
		want        bool
	}{
		{alice, alice, "/tmp", true},
		{0, alice, "/tmp", true},
		{0, 0, "/tmp", true},
		{mallory, alice, "/tmp", false},
		{mallory, alice, dir, false}, // only root may trust another user
		{mallory, 0, "/tmp", false},
		{mallory, 0, dir, true},
		{alice, 0, dir, false},
		{mallory, 0, dir + "/none", false},
	} {
		if got := believed(c.server, c.own, c.folder); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
