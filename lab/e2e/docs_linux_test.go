package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/docs"
	"github.com/tributary-http/tributary/lab/netlab"
)

// TestDocs runs the commands in README.md and docs like a user who recently installed Tributary and reads a page from the
// top: verbatim, in order, in one shell. Each page gets a disposable copy of this machine's file system, an empty home
// folder, and an internet with the names that the pages use, behind two links. Between commands, the test does what the
// page tells the reader: it puts TOML into the configuration and restarts the proxy.
//
// Differences from the reader's machine: everything runs as root, and sudo does nothing; the links are named in the
// configuration, because those of the lab are TUN devices; cat stands in for mpv; and a script says that systemd keeps the
// gateway's port.
func TestDocs(t *testing.T) {
	t.Parallel()
	for _, program := range [][2]string{{"wget", "wget"}, {"aria2c", "aria2"}, {"nft", "nftables"}, {"/usr/bin/pip", "python3-pip"}, {"git", "git"}} {
		need(t, program[0], program[1])
	}
	pages, err := docs.Pages(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, netlab.Scenario{Name: "docs", Links: []netlab.LinkSpec{
		netlab.Symmetric("wlan0", 60*netlab.Mbit, 10*time.Millisecond),
		netlab.Symmetric("wwan0", 40*netlab.Mbit, 30*time.Millisecond),
	}}, netlab.NginxOptions{Port: 8300}) // the usual ports belong to the internet
	if r.options.Binary, err = plainBinary(); err != nil {
		t.Fatal(err)
	}
	r.startInternet()
	commands := 0
	for _, p := range pages {
		script, n := script(p)
		if n == 0 {
			continue
		}
		commands += n
		t.Run(p.Path, func(t *testing.T) { r.on(t).reads(script) })
	}
	if commands < 40 {
		t.Errorf("%d commands only", commands)
	}
	for _, l := range r.lab.LinkNames() {
		if _, n := r.carried(l); n < 1_000_000 {
			t.Errorf("%s carried %d bytes only", l, n)
		}
	}
}

// prologue provides what the reader has: a shell, and a way to start a program in another terminal.
const prologue = `set -eEu -o pipefail
at=start proxy=
trap 'echo "FAILED at $at" >&2; tail -n 5 ~/serve.log >&2 || true' ERR
trap 'if [ -n "$proxy" ]; then kill -KILL "$proxy" || true; wait "$proxy" || true; fi 2>/dev/null' EXIT
sudo() { "$@"; }
mpv() { cat >/dev/null; }
tributary() {
	if [ "$1" = serve ]; then shift; start "$@"; else command tributary "$@"; fi
}
healthy() { curl -s -o /dev/null --noproxy '*' http://127.0.0.1:9091/healthz; }
start() {
	flags=("$@")
	if healthy; then
		echo 'another proxy runs' >&2
		return 1
	fi
	/usr/local/bin/tributary serve "$@" >>~/serve.log 2>&1 &
	proxy=$!
	for _ in $(seq 200); do
		if healthy; then return; fi
		kill -0 "$proxy"
		sleep 0.05
	done
	return 1
}
configure() {
	mkdir -p ~/.config/tributary
	cat >~/.config/tributary/config.toml
	if [ -n "$proxy" ]; then
		command tributary config check
		kill "$proxy"
		wait "$proxy" || true
		start "${flags[@]}"
	fi
}
`

// script returns the input that a reader of a page types, and the number of commands in it.
func script(p docs.Page) (string, int) {
	settings := settings{top: []string{`links = ["wlan0", "wwan0"]`}}
	var b strings.Builder
	configure := func() { fmt.Fprintf(&b, "configure <<'END'\n%sEND\n", settings.text()) }
	b.WriteString(prologue)
	configure()
	blocks := docs.Blocks(p.Text)
	starts := false // whether the page tells the reader to start the proxy
	for _, block := range blocks {
		starts = starts || block.IsRun() && slices.ContainsFunc(block.Commands(), func(c string) bool { return strings.HasPrefix(c, "tributary serve") })
	}
	if !starts {
		b.WriteString("start\n") // the page assumes a running proxy
	}
	n := 0
	for _, block := range blocks {
		switch {
		case block.IsRun():
			for i, c := range block.Commands() {
				n++
				fmt.Fprintf(&b, "at='%s:%d, command %d'\n%s\n", p.Path, block.Line, i+1, strings.ReplaceAll(c, "sha256:HEX", "sha256:"+digest("/disk.img")))
			}
		case block.Language == "toml" && !strings.Contains(block.Text, "listen ="): // those are the defaults
			settings.add(block.Text)
			configure()
		}
	}
	return b.String(), n
}

// settings is a configuration file: keys, then tables.
type settings struct{ top, tables []string }

func (s *settings) add(text string) {
	keys, tables, found := strings.Cut("\n"+text, "\n[")
	s.top = append(s.top, strings.TrimSpace(keys))
	if found {
		s.tables = append(s.tables, "["+strings.TrimSpace(tables))
	}
}

func (s *settings) text() string {
	return strings.Join(append(append([]string{}, s.top...), s.tables...), "\n") + "\n"
}

// elsewhere makes a copy of the file system that vanishes with the process, and runs a script in it. Its arguments are a
// folder, the program, a certificate, the script and a line of /etc/hosts.
const elsewhere = `set -e
mount -t tmpfs -o size=2g docs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
root=$1/root
cp "$2" "$root/usr/local/bin/tributary"
cat "$3" >>"$root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$root/usr/local/share/ca-certificates" # with others there, run leaves programs with a built-in list alone
rm -f "$root/etc/resolv.conf"
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "$5" >>"$root/etc/hosts"
echo alice:x:4242:4242::/home/alice:/bin/sh >>"$root/etc/passwd"
rm -rf "$root/etc/apt/sources.list.d" "$root/var/lib/apt/lists"
printf 'deb [trusted=yes] %s://deb.debian.org/debian ./\n' http https >"$root/etc/apt/sources.list"
mkdir -p "$root/home/reader" "$root/var/lib/apt/lists/partial"
for d in proc sys dev; do mount --rbind "/$d" "$root/$d"; done
cp "$4" "$root/home/reader/script"
cat >"$root/usr/local/bin/systemctl" <<'END'
#!/bin/sh
case "$*" in
*list-sockets*) echo 127.0.0.1:8081 tributary-gateway.socket tributary.service ;;
*show*) echo ActiveState=active; echo UnitFileState=enabled ;;
esac
END
chmod 755 "$root/usr/local/bin/systemctl"
exec chroot "$root" env -i HOME=/home/reader USER=root SHELL=/bin/sh TERM=dumb LC_ALL=C.UTF-8 \
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c 'cd && exec bash script </dev/null'
`

// reads runs a page's script.
func (r *rig) reads(script string) {
	r.Helper()
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	dir := r.folder()
	r.mkdir(dir, "top")
	file := filepath.Join(dir, "script")
	r.write(file, []byte(script))
	c := r.client("sh", "-c", elsewhere, "sh", filepath.Join(dir, "top"), r.options.Binary, cert.CA, file,
		netlab.PublicAddr.String()+" "+netlab.DockerName)
	if strings.Contains(c.said, "mount: ") {
		r.Skipf("no overlay can be mounted here: %s", c.said)
	}
	if c.failed != nil {
		r.Errorf("%v\n%s\n%s", c.failed, c.said, c.body)
	}
}

// docsSize is the size of a file in the internet of TestDocs.
const docsSize = 400_000

// docsContent returns the file at a path: random bytes, except for files that a command unpacks or installs.
func docsContent(path string) []byte {
	seed := sha256.Sum256([]byte(path))
	content := make([]byte, docsSize)
	_, _ = rand.NewChaCha8(seed).Read(content) // never fails
	var b bytes.Buffer
	switch {
	case strings.HasSuffix(path, ".tar.gz"):
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		_ = w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: docsSize}) // into memory
		_, _ = w.Write(content)
		_, _ = w.Close(), z.Close()
	case strings.HasSuffix(path, ".whl"):
		w := zip.NewWriter(&b)
		for _, f := range []struct{ name, text string }{
			{"torch/data", string(content)},
			{"torch-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 1\n"},
			{"torch-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
			{"torch-1.dist-info/RECORD", ""},
		} {
			part, _ := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
			_, _ = part.Write([]byte(f.text))
		}
		_ = w.Close()
	default:
		return content
	}
	return b.Bytes()
}

func digest(path string) string {
	sum := sha256.Sum256(docsContent(path))
	return hex.EncodeToString(sum[:])
}

// startInternet serves everything that the documentation downloads, at the ports of http and https: a file at each path,
// an index of Python packages, an apt repository, a git repository.
func (r *rig) startInternet() {
	r.Helper()
	const wheel = "/torch-1-py3-none-any.whl"
	pages := map[string]string{
		"pypi.org/simple/pip/":             "<!DOCTYPE html><title>pip</title>",
		"pypi.org/simple/torch/":           `<!DOCTYPE html><a href="https://files.pythonhosted.org` + wheel + `#sha256=` + digest(wheel) + `">torch-1-py3-none-any.whl</a>`,
		"huggingface.co/":                  "a hub",
		netlab.DockerName + "/v2/":         "{}",
		"ghcr.io/v2/":                      "{}",
		"deb.debian.org/debian/./Packages": "",
		"deb.debian.org/debian/Packages":   "",
		"example.com/repo.git/info/refs":   strings.Repeat("0123456789", 4) + "\trefs/heads/main\n",
		"example.com/repo.git/HEAD":        "ref: refs/heads/main\n",
	}
	var files sync.Map // by path
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		page, ok := pages[req.Host+req.URL.Path]
		switch {
		case ok:
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page)) // a client that has gone needs no answer
		case strings.Contains(req.URL.Path, "/debian/"), strings.Contains(req.URL.Path, ".git/"):
			http.NotFound(w, req)
		default:
			content, ok := files.Load(req.URL.Path)
			if !ok {
				content, _ = files.LoadOrStore(req.URL.Path, docsContent(req.URL.Path))
			}
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(content.([]byte)))
		}
	})
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert.Chain, cert.Key)
	if err != nil {
		r.Fatal(err)
	}
	for _, port := range []string{"80", "443"} {
		var ln net.Listener
		err := r.lab.InServer(func() (err error) {
			ln, err = (&net.ListenConfig{}).Listen(r.ctx, "tcp", net.JoinHostPort(netlab.PublicAddr.String(), port))
			return err
		})
		if err != nil {
			r.Fatal(err)
		}
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
			ErrorLog: log.New(io.Discard, "", 0), // clients may disconnect early
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if port == "443" {
				_ = server.ServeTLS(ln, "", "") // until Close
			} else {
				_ = server.Serve(ln)
			}
		}()
		r.Cleanup(func() {
			_ = server.Close() // Serve's return value shows it
			<-done
		})
	}
}
