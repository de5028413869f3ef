package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// catchScript listens on ports as another user, and keeps what it receives in a file.
const catchScript = `
import os, socketserver, sys, threading
kept = open(sys.argv[1], 'ab', 0)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
class Catch(socketserver.BaseRequestHandler):
    def handle(self):
        while text := self.request.recv(65536): kept.write(b'%d: %r\n' % (self.server.server_address[1], text))
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
servers = [Server(('127.0.0.1', int(port)), Catch) for port in sys.argv[2:]]
for s in servers[1:]: threading.Thread(target=s.serve_forever).start()
servers[0].serve_forever()
`

// TestPortsTaken: while the proxy does not run, another user listens on each of its ports. Our own commands send nothing there.
func TestPortsTaken(t *testing.T) {
	need(t, python, "python3")
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(3_000_000)
	kept := filepath.Join(r.folder(), "kept")
	r.write(kept, nil)
	ports := []string{"8080", "8081", "6800", "1080", "9091"}
	thief := r.lab.Client(r.ctx, python, append([]string{"-c", catchScript, kept}, ports...)...)
	if err := thief.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = thief.Process.Kill(); _ = thief.Wait() }()
	for _, port := range ports {
		if err := r.lab.WaitForClient(r.ctx, "127.0.0.1:"+port); err != nil {
			t.Fatal(err)
		}
	}
	if c := r.tributary("use", "pip", "--gateway", "127.0.0.1:8081"); c.failed == nil || !strings.Contains(c.said, "can take port 8081") {
		t.Errorf("R226 use: %d %s", c.code, c.said)
	}
	for _, args := range [][]string{{"use", "pip"}, {"rpc", "pair"}, {"status", "--once"}} {
		if c := r.tributary(args...); c.failed == nil || !strings.Contains(c.said, "is not running") {
			t.Errorf("%v: %d %s", args, c.code, c.said)
		}
	}
	f := r.run("curl", "-sS", "--fail", "-H", "Cookie: session=SECRET", "-o", "object", o.URL)
	if err := f.cmd.Wait(); err != nil {
		t.Errorf("run: %v %s", err, f.said.String())
	}
	r.isObject(r.read(filepath.Join(f.temporary, "object")), o)
	if said := r.read(kept); len(said) > 0 {
		t.Errorf("another user got %s", said)
	}
}
