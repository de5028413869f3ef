package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	storePort = 8446
	parts     = 8
	partSize  = 1 << 20
)

// store is an https origin that acts as an object store, a package registry, or a model hub. It counts connections.
type store struct {
	tarball []byte // of every package
	url     string

	mu       sync.Mutex
	conns    map[string]map[string]bool // addresses of connections that had a request, by protocol
	received int64                      // bytes of uploads
}

// startStore starts a store whose connections speak the given protocols.
func (r *rig) startStore(protocols ...string) *store {
	r.Helper()
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert.Chain, cert.Key)
	if err != nil {
		r.Fatal(err)
	}
	var ln net.Listener
	err = r.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp", fmt.Sprintf("%s:%d", netlab.OriginAddr, storePort))
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	s := &store{conns: map[string]map[string]bool{}, url: fmt.Sprintf("https://%s:%d", netlab.OriginName, storePort)}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: testTime,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: protocols},
	}
	if !slices.Contains(protocols, "h2") {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.ServeTLS(ln, "", "") }()
	r.Cleanup(func() { server.Close(); <-served })
	return s
}

// said describes the connections since the last call.
func (s *store) said() (text string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, protocol := range slices.Sorted(maps.Keys(s.conns)) {
		n := len(s.conns[protocol])
		all, most = append(all, fmt.Sprintf("%d of %s", n, protocol)), max(most, n)
	}
	clear(s.conns)
	return strings.Join(all, ", "), most
}

// ServeHTTP implements http.Handler.
func (s *store) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	if s.conns[q.Proto] == nil {
		s.conns[q.Proto] = map[string]bool{}
	}
	s.conns[q.Proto][q.RemoteAddr] = true
	s.mu.Unlock()
	switch path := q.URL.Path; {
	case strings.HasPrefix(path, "/bucket"):
		s.bucket(w, q)
	case strings.HasPrefix(path, "/p"):
		s.registry(w, path[1:])
	case strings.HasPrefix(path, "/api/models/"):
		s.hub(w, path)
	case strings.Contains(path, "/resolve/"):
		w.Header().Set("X-Repo-Commit", strings.Repeat("a", 40))
		w.Header().Set("Etag", `"`+filepath.Base(path)+`"`)
		w.Header().Set("Content-Length", strconv.Itoa(partSize))
		if q.Method == http.MethodGet {
			_, _ = w.Write(make([]byte, partSize))
		}
	default:
		http.NotFound(w, q)
	}
}

// hub describes a model of several files.
func (s *store) hub(w http.ResponseWriter, path string) {
	type file struct {
		Name string `json:"rfilename"`
		Path string `json:"path"`
		Type string `json:"type"`
		ID   string `json:"oid"`
		Size int    `json:"size"`
	}
	var files []file
	for i := range parts {
		name := fmt.Sprintf("%d.bin", i)
		files = append(files, file{name, name, "file", name, partSize})
	}
	if strings.Contains(path, "/tree/") {
		_ = json.NewEncoder(w).Encode(files)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "a/b", "sha": strings.Repeat("a", 40), "siblings": files})
}

// bucket takes an upload in parts, as S3 does.
func (s *store) bucket(w http.ResponseWriter, q *http.Request) {
	n, _ := io.Copy(io.Discard, q.Body)
	s.mu.Lock()
	s.received += n
	complete := s.received >= 5*parts*partSize
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/xml")
	switch query := q.URL.Query(); {
	case q.Method == http.MethodPost && query.Has("uploads"):
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>o</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>")
	case q.Method == http.MethodPost:
		_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><Key>o</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
	case q.Method == http.MethodPut:
		w.Header().Set("Etag", `"e"`)
	case q.Method == http.MethodHead && !complete:
		w.WriteHeader(http.StatusNotFound)
	case q.Method == http.MethodHead:
		w.Header().Set("Content-Length", strconv.Itoa(5*parts*partSize))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	default:
		_, _ = io.WriteString(w, "<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>")
	}
}

// registry serves npm packages.
func (s *store) registry(w http.ResponseWriter, name string) {
	if strings.HasSuffix(name, ".tgz") {
		_, _ = w.Write(s.tarball)
		return
	}
	sum := sha512.Sum512(s.tarball)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"name": name, "dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": map[string]any{
			"name": name, "version": "1.0.0",
			"dist": map[string]string{
				"tarball": s.url + "/" + name + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
			},
		}},
	})
}

// tarball returns a package of random bytes.
func tarball(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(data)
	for name, text := range map[string][]byte{"package/package.json": []byte(`{"name":"p","version":"1.0.0"}`), "package/data": data} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const boto3Put = `
import sys, boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s",
                  config=Config(s3={"addressing_style": "path"}), verify=sys.argv[3])
s3.upload_file(sys.argv[2], "bucket", "o")
`

const hubGet = `
import sys
from huggingface_hub import snapshot_download
snapshot_download("a/b", cache_dir=sys.argv[1])
`

// TestSpreadPrograms makes programs upload and download over https with their own settings and shows how many connections
// they open: several with HTTP/1.1, which are spread. HTTP/2 puts all requests into one connection.
func TestSpreadPrograms(t *testing.T) {
	if !matrix() {
		t.Skip("minutes of programs that TestSpread stands for: make matrix runs it")
	}
	for _, protocols := range [][]string{{"http/1.1"}, {"h2", "http/1.1"}} {
		t.Run("the origin speaks "+strings.ReplaceAll(strings.Join(protocols, " and "), "/", " "), func(t *testing.T) {
			r := start(t, quick())
			s := r.startStore(protocols...)
			s.tarball = tarball(t, 300_000)
			cert, err := r.lab.Certificate()
			if err != nil {
				t.Fatal(err)
			}
			file := r.file()
			if err := os.WriteFile(file, make([]byte, 5*parts*partSize), 0o644); err != nil { // parts of S3 have at least 5 MiB
				t.Fatal(err)
			}
			run := func(r *rig, vars []string, argv ...string) {
				r.Helper()
				links := r.over(func() {
					r.ok(r.viaEnv("", append(append([]string{"env", "-u", "AWS_CA_BUNDLE", "https_proxy=" + proxyURL, "HTTPS_PROXY=" + proxyURL}, vars...), argv...)...))
				})
				said, most := s.said()
				r.Logf("connections: %s; the links carried %v", said, links)
				for link, n := range links {
					if most > 2 && n < 5*partSize/10 {
						r.Errorf("%d connections, and %s carried %d bytes", most, link, n)
					}
				}
			}
			t.Run("boto3", func(t *testing.T) {
				if exec.Command(python, "-c", "import boto3").Run() != nil {
					t.Skip("boto3 is not installed: apt-get install python3-boto3")
				}
				r := r.on(t)
				run(r, nil, python, "-c", boto3Put, s.url, file, cert.CA)
			})
			rclone := func(t *testing.T, args ...string) {
				need(t, "rclone", "rclone")
				r := r.on(t)
				s.mu.Lock()
				s.received = 0
				s.mu.Unlock()
				run(r, nil, append([]string{
					"rclone", "copyto", "--ca-cert=" + cert.CA, "--retries=1", "--s3-provider=Other", "--s3-endpoint=" + s.url,
					"--s3-access-key-id=k", "--s3-secret-access-key=s", "--s3-no-check-bucket", "--s3-upload-cutoff=5M", file, ":s3:bucket/o",
				}, args...)...)
			}
			t.Run("rclone", func(t *testing.T) { rclone(t) })
			t.Run("rclone without HTTP 2", func(t *testing.T) { rclone(t, "--disable-http2") })
			t.Run("npm", func(t *testing.T) {
				need(t, "npm", "npm")
				r := r.on(t)
				dir := filepath.Dir(r.file())
				argv := []string{
					"npm", "install", "--prefix", dir, "--cache", filepath.Join(dir, "cache"), "--registry", s.url, "--no-audit",
					"--no-fund", "--no-update-notifier",
				}
				for i := range 30 {
					argv = append(argv, fmt.Sprintf("p%d", i))
				}
				run(r, []string{"NODE_EXTRA_CA_CERTS=" + cert.CA}, argv...)
			})
			t.Run("huggingface_hub", func(t *testing.T) {
				at := pythonWith("huggingface_hub")
				if at == "" {
					t.Skip("no python3 in PATH knows huggingface_hub: make matrix")
				}
				r := r.on(t)
				run(r, []string{"HF_ENDPOINT=" + s.url, "HF_HUB_DISABLE_XET=1", "SSL_CERT_FILE=" + cert.CA}, at, "-c", hubGet, r.file()+".d")
			})
		})
	}
}
