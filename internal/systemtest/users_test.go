package systemtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// askAs runs instead of the tests when TRIBUTARY_TEST_ASK names a proxy: it requests the proxy's help page as the user who runs it,
// and prints the status code.
func askAs(proxy string) int {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return 1
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 1
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 1
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	return 0
}

func TestUsers(t *testing.T) {
	const nobody = 65534
	as := func(t *testing.T, uid uint32, proxy string) string {
		t.Helper()
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "TRIBUTARY_TEST_ASK="+proxy)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("run this program as another user: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	for _, c := range []struct {
		allow []string
		want  string
	}{
		{nil, "403"},
		{[]string{"4242"}, "403"},
		{[]string{fmt.Sprint(nobody)}, "400"}, // the help page
		{[]string{"all"}, "400"},
	} {
		t.Run(fmt.Sprintf("R185 another user, allow_users = %v", c.allow), func(t *testing.T) {
			if os.Getuid() != 0 {
				t.Skip("needs root to run a program as another user")
			}
			cfg := settings()
			cfg.AllowUsers = c.allow
			_, proxy := startGuarded(t, cfg)
			if got := as(t, nobody, proxy.Host); got != c.want {
				t.Errorf("nobody gets %s, want %s", got, c.want)
			}
			if got := as(t, 0, proxy.Host); got != "400" {
				t.Errorf("root gets %s", got)
			}
		})
	}
	t.Run("R185 a thousand short connections of the user who started it", func(t *testing.T) {
		_, proxy := startGuarded(t, settings())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 50 {
					if status, _, body := ask(t, proxy, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); status != 400 {
						t.Errorf("%d %s", status, body)
						return
					}
				}
			})
		}
		all.Wait()
	})
	t.Run("R190 600 connections, and the admin port still answers", func(t *testing.T) {
		cfg := settings()
		cfg.Admin = "127.0.0.1:0"
		d, proxy := startGuarded(t, cfg)
		for range 600 {
			c, err := net.Dial("tcp", proxy.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		status, header, _ := ask(t, proxy, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if status != 503 || header.Get("Retry-After") == "" {
			t.Errorf("%d %v", status, header)
		}
		admin := d.Listeners()[0].String()
		var visitors []net.Conn
		for range 100 {
			c, err := net.Dial("tcp", admin)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			visitors = append(visitors, c)
		}
		for _, c := range visitors[64:] {
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("one of too many connections to the admin port: %v", err)
			}
		}
		// While the first ones occupy their places.
		if _, err := io.WriteString(visitors[0], "GET /healthz HTTP/1.1\r\nHost: "+admin+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(visitors[0]), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable { // no link is up
			t.Errorf("admin: %d", resp.StatusCode)
		}
	})
}
