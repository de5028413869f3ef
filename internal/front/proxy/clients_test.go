package proxy_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// run runs a client program with a clean environment and the proxy set, and returns its output and its exit status.
func run(t *testing.T, g *rig, name string, args ...string) (string, int) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "http_proxy=http://" + g.addr,
		"https_proxy=http://" + g.addr,
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Logf("%s: exit %d, %d bytes; %s", name, cmd.ProcessState.ExitCode(), out.Len(), errs.String())
	return out.String(), cmd.ProcessState.ExitCode()
}

// realOrigin serves an object with ranges at /big and echoes posts at /echo, on the server that begin starts.
func realOrigin(t *testing.T, begin func(*httptest.Server)) (*httptest.Server, string) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	mux := http.NewServeMux()
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "big.bin", time.Unix(1e9, 0), strings.NewReader(big))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	s := httptest.NewUnstartedServer(mux)
	begin(s)
	t.Cleanup(s.Close)
	return s, big
}

func TestRealClients(t *testing.T) {
	g := start(t)
	s, big := realOrigin(t, (*httptest.Server).Start)
	same := func(t *testing.T, got string, exit int, want string) {
		t.Helper()
		if exit != 0 || got != want {
			t.Errorf("exit %d, %d bytes; want 0, %d bytes", exit, len(got), len(want))
		}
	}
	t.Run("curl GET", func(t *testing.T) {
		out, exit := run(t, g, "curl", "-sS", s.URL+"/big")
		same(t, out, exit, big)
	})
	t.Run("curl range", func(t *testing.T) {
		out, exit := run(t, g, "curl", "-sS", "-r", "5-1004", s.URL+"/big")
		same(t, out, exit, big[5:1005])
	})
	t.Run("curl HEAD", func(t *testing.T) {
		out, exit := run(t, g, "curl", "-sSI", s.URL+"/big")
		if exit != 0 || !strings.Contains(out, "Content-Length: 1048576\r\n") {
			t.Errorf("exit %d, %q", exit, out)
		}
	})
	t.Run("R56 curl POST with Expect", func(t *testing.T) {
		out, exit := run(t, g, "curl", "-sS", "-H", "Expect: 100-continue", "--expect100-timeout", "15", "--data-binary", "hello",
			s.URL+"/echo")
		same(t, out, exit, "hello")
	})
	t.Run("curl two on one connection", func(t *testing.T) {
		out, exit := run(t, g, "curl", "-sS", "-r", "0-9", s.URL+"/big", s.URL+"/big")
		same(t, out, exit, big[:10]+big[:10])
	})
	t.Run("R49 curl sees a short answer", func(t *testing.T) {
		o := serve(t, func(c *conn) {
			_, _ = c.head()
			c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
		})
		if _, exit := run(t, g, "curl", "-sS", o.url("/")); exit != 18 {
			t.Errorf("exit %d, want 18", exit)
		}
		o = serve(t, func(c *conn) {
			_, _ = c.head()
			c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n")
		})
		if _, exit := run(t, g, "curl", "-sS", o.url("/")); exit != 18 {
			t.Errorf("chunked: exit %d, want 18", exit)
		}
		if _, exit := run(t, g, "curl", "-sS", "-0", o.url("/")); exit != 56 {
			t.Errorf("close-delimited: exit %d, want 56", exit)
		}
	})
	t.Run("wget", func(t *testing.T) {
		out, exit := run(t, g, "wget", "-q", "-O", "-", s.URL+"/big")
		same(t, out, exit, big)
	})
	t.Run("python3 urllib", func(t *testing.T) {
		out, exit := run(t, g, "python3", "-c",
			"import sys,urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())", s.URL+"/big")
		same(t, out, exit, big)
	})
	t.Run("curl https through CONNECT", func(t *testing.T) {
		s, big := realOrigin(t, (*httptest.Server).StartTLS)
		out, exit := run(t, g, "curl", "-sSk", s.URL+"/big")
		same(t, out, exit, big)
	})
	t.Run("curl refused by name of the cause", func(t *testing.T) {
		out, exit := run(t, g, "curl", "-sS", "-i", "http://127.0.0.1:1/")
		if exit != 0 || !strings.Contains(out, "error=connection_refused") {
			t.Errorf("exit %d, %q", exit, out)
		}
	})
}
