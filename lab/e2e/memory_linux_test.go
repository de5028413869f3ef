package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestSlowClients: with 100 clients that read slowly, the program's memory stays within the budget and 25 MB.
func TestSlowClients(t *testing.T) {
	t.Run("R191 the memory of 100 slow clients", func(t *testing.T) {
		r := newRig(t, shipped(t, "crowd"), netlab.NginxOptions{})
		r.options.Binary = r.plain()
		r.serve()
		url := r.nginx.NamedURL(r.object(50_000_000))
		var clients sync.WaitGroup
		for range 100 {
			clients.Go(func() {
				if err := r.sip(url, 200_000, 2_500_000); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		const beyond = 25_000_000
		budget := int64(r.metrics()["tributary_budget_bytes"])
		if most := r.peakMemory(); most > budget+beyond {
			t.Errorf("the program took %.1f MB, want %.1f at most", float64(most)/1e6, float64(budget+beyond)/1e6)
		} else {
			t.Logf("the program took %.1f MB", float64(most)/1e6)
		}
	})
}

// plain builds the program as users run it: the race detector takes several times the memory.
func (r *rig) plain() string {
	r.Helper()
	if path := os.Getenv("TRIBUTARY_BINARY"); path != "" {
		return path
	}
	path := filepath.Join(binaryDir, "tributary-plain")
	build := exec.CommandContext(r.ctx, "go", "build", "-trimpath", "-o", path, "./cmd/tributary")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		r.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// sip downloads through the proxy at perSecond bytes per second with a small receive buffer, and leaves after n bytes.
func (r *rig) sip(url string, perSecond, n int64) error {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	conn, err := r.lab.DialContext(r.ctx, "tcp", netlab.ProxyAddr)
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10) })
	if err := errors.Join(err, serr, req.WriteProxy(conn)); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK { // the body is not closed: that would read all of it
		return fmt.Errorf("status %s", res.Status)
	}
	const piece = 16 << 10
	pace := time.NewTicker(piece * time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for got := int64(0); got < n; got += piece {
		if _, err := io.CopyN(io.Discard, res.Body, piece); err != nil {
			return err
		}
		<-pace.C
	}
	return nil
}

// peakMemory returns the most resident memory that the program has had, in bytes.
func (r *rig) peakMemory() int64 {
	r.Helper()
	text := string(r.read(fmt.Sprintf("/proc/%d/status", r.proxy.PID())))
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(text)
	if m == nil {
		r.Fatal("no VmHWM in the status of the process")
	}
	kB, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		r.Fatal(err)
	}
	return kB << 10
}
