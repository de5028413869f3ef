package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// thiefScript listens on the port of RPC, keeps what it receives in a file, and answers as the extension would like it.
const thiefScript = `
import base64, hashlib, json, os, re, socketserver, sys
kept = open(sys.argv[1], 'ab', 0)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
complete = {'status': 'complete', 'totalLength': '8000000', 'token': 'x' * 40, 'tributary': {'type': 'application/octet-stream'}}
class Thief(socketserver.StreamRequestHandler):
    def handle(self):
        head = b''
        while not head.endswith(b'\r\n\r\n'):
            line = self.rfile.readline()
            if not line: return
            head += line
        kept.write(head)
        key = re.search(rb'(?i)sec-websocket-key: *(\S+)', head)
        if not key:
            length = re.search(rb'(?i)content-length: *(\d+)', head)
            kept.write(self.rfile.read(int(length.group(1)) if length else 0))
            text = json.dumps({'id': 1, 'result': complete, 'token': 'x' * 40}).encode()
            self.wfile.write(b'HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\nContent-Length: %d\r\n\r\n' % len(text) + text)
            return
        accept = base64.b64encode(hashlib.sha1(key.group(1) + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())
        self.wfile.write(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + accept + b'\r\n\r\n')
        while True:
            start = self.rfile.read(2)
            if len(start) < 2: return
            n = start[1] & 127
            if n > 125: n = int.from_bytes(self.rfile.read(2 if n == 126 else 8), 'big')
            mask = self.rfile.read(4)
            text = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))
            kept.write(text + b'\n')
            if start[0] & 15 != 1: return
            call = json.loads(text)
            text = json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': ['0' * 64] if 'prove' in call['method'] else complete}).encode()
            self.wfile.write(b'\x81' + (bytes([len(text)]) if len(text) < 126 else b'\x7e' + len(text).to_bytes(2, 'big')) + text)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(('127.0.0.1', 6800), Thief).serve_forever()
`

// TestExtensionTaken: while the program does not run, another user takes its port. That user gets no token, cookie or URL, and
// the download stays in the browser.
func TestExtensionTaken(t *testing.T) {
	need(t, python, "python3")
	inBrowsers(t, taken)
}

func taken(t *testing.T, open func(*rig, string) surfer) {
	r, folder := startRPC(t, quick())
	r.stopped = true // before the test ends
	o := r.object(8_000_000)
	e := openExtended(r, folder, open)
	token := e.eval(extensionAPI + `.storage.local.get("token").then(s => s.token)`)
	e.fill([]cookie{{netlab.OriginAddr.String(), "session", "SECRET"}, {"127.0.0.1", "local", "SECRET"}, {"localhost", "local", "SECRET"}})
	r.kill()
	kept := filepath.Join(r.folder(), "kept")
	r.write(kept, nil)
	thief := r.lab.Client(r.ctx, python, "-c", thiefScript, kept)
	if err := thief.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = thief.Process.Kill(); _ = thief.Wait() }()
	if err := r.lab.WaitForClient(r.ctx, "127.0.0.1:6800"); err != nil {
		t.Fatal(err)
	}
	e.tells(`{ look: true }`)
	e.order("/save/" + o.Size.String())
	r.isObject(r.read(e.has("what came while another user had the port", "/save/", o.Size)), o)
	e.eval(extensionAPI + `.runtime.sendMessage({ look: true }).then(() => "", () => "")`)
	e.sees("the extension is done", extensionAPI+`.storage.local.get("open").then(s => Object.keys(s.open ?? {}).length > 0)`)
	said := string(r.read(kept))
	t.Logf("another user got %d bytes:\n%s", len(said), said)
	for _, secret := range []string{token, "SECRET", "/save/", "addUri", "Cookie:", "cookie:"} {
		if strings.Contains(said, secret) {
			t.Errorf("R222 another user got %s", secret)
		}
	}
	if !strings.Contains(said, "tributary.prove") {
		t.Error("R222 it was not asked to prove itself")
	}
}
