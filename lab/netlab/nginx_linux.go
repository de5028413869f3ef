package netlab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"golang.org/x/sys/unix"
)

// NginxOptions are the settings of an origin.
type NginxOptions struct {
	Port              int    // 0 = 80
	TLSPort           int    // port of https; 0 = 443 if Port is 80, otherwise none
	NoHTTP2           bool   // https speaks HTTP/1.1 only
	KeepaliveRequests int    // requests after which nginx closes a connection, 0 = practically never
	Directives        string // put into the location of the objects, such as "max_ranges 0;"
	HTTP              string // put into the http block, such as "limit_conn_zone $binary_remote_addr zone=a:1m;"
	MPTCP             bool   // run by mptcpize, so that it accepts MPTCP
	inner             int    // port for connections that begin with their client's address, and the next one for TLS
}

// Nginx is a running nginx in the server namespace that serves the lab's objects.
type Nginx struct {
	lab  *Lab
	port int
	tls  int // port of https, 0 = none
	root string
	dir  string

	*service

	mu      sync.Mutex
	objects map[Bytes]Object
}

// practicallyNever is more requests than any test makes on a connection; nginx's own default of 1000 is not.
const practicallyNever = 1_000_000_000

var nginxConf = template.Must(template.New("nginx.conf").Parse(`daemon off;
user root;
worker_processes 1;
pid {{.Dir}}/pid;
error_log {{.Dir}}/error.log;
events { worker_connections 8192; }
http {
	log_format lab '$request_method\t$status\t$http_range\t$remote_addr\t$bytes_sent\t$connection\t$server_protocol\t'
		'$msec\t$request_time';
	access_log {{.Dir}}/access.log lab;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	default_type application/octet-stream;
	sendfile on;
	etag on;
	keepalive_timeout 75s;
	keepalive_requests {{.Keepalive}};
	{{.HTTP}}
	server {
		listen {{.Port}};
		listen [::]:{{.Port}};
		{{- if .TLS}}
		listen {{.TLS}} ssl{{.HTTP2}} default_server;
		listen [::]:{{.TLS}} ssl{{.HTTP2}} default_server;
		ssl_certificate {{.Cert.Chain}};
		ssl_certificate_key {{.Cert.Key}};
		ssl_protocols TLSv1.2 TLSv1.3;
		{{- end}}
		{{- if .Inner}}
		listen 127.0.0.1:{{.Inner}} proxy_protocol;
		{{- if .TLS}}
		listen 127.0.0.1:{{.InnerTLS}} ssl{{.HTTP2}} proxy_protocol;
		{{- end}}
		set_real_ip_from 127.0.0.1;
		real_ip_header proxy_protocol;
		{{- end}}
		server_name _;
		root {{.Root}};
		location / { {{.Directives}} }
	}
}
`))

// StartNginx starts nginx with the scenario's objects and waits until it listens. It runs until Stop or the lab's
// Close.
func (l *Lab) StartNginx(ctx context.Context, o NginxOptions) (*Nginx, error) {
	n := &Nginx{
		lab:     l,
		port:    o.Port,
		tls:     o.TLSPort,
		root:    filepath.Join(l.Dir, "objects"),
		objects: map[Bytes]Object{},
	}
	if n.port == 0 {
		n.port = 80
	}
	if n.tls == 0 && n.port == 80 {
		n.tls = 443
	}
	if o.KeepaliveRequests == 0 {
		o.KeepaliveRequests = practicallyNever
	}
	if err := n.start(ctx, o); err != nil {
		return nil, fmt.Errorf("nginx: %w", err)
	}
	return n, nil
}

func (n *Nginx) start(ctx context.Context, o NginxOptions) error {
	if err := os.MkdirAll(n.root, 0o755); err != nil {
		return err
	}
	for _, size := range n.lab.Scenario.Objects {
		if _, err := n.Object(size); err != nil {
			return err
		}
	}
	var err error
	if n.dir, err = os.MkdirTemp(n.lab.Dir, "nginx"); err != nil {
		return err
	}
	cert, err := n.lab.Certificate()
	if err != nil {
		return err
	}
	http2 := " http2" // newer versions want a separate directive, which older ones do not know
	if o.NoHTTP2 {
		http2 = ""
	}
	var conf bytes.Buffer
	err = nginxConf.Execute(&conf, map[string]any{
		"Dir": n.dir, "Root": n.root, "Port": n.port, "Keepalive": o.KeepaliveRequests, "Directives": o.Directives,
		"HTTP": o.HTTP, "TLS": n.tls, "HTTP2": http2, "Cert": cert,
		"Inner": o.inner, "InnerTLS": o.inner + 1,
	})
	if err != nil {
		return err
	}
	path := filepath.Join(n.dir, "nginx.conf")
	if err := os.WriteFile(path, conf.Bytes(), 0o644); err != nil {
		return err
	}
	args := []string{"nginx", "-p", n.dir, "-e", filepath.Join(n.dir, "error.log"), "-c", path}
	if o.MPTCP {
		args = append([]string{"mptcpize", "run"}, args...)
	}
	n.service, err = n.lab.startService(ctx, args, n.port)
	return err
}

// KillWorkers kills the processes that serve connections; nginx replaces them at once.
func (n *Nginx) KillWorkers() error {
	pid := n.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return fmt.Errorf("nginx: workers: %w", err)
	}
	for _, field := range strings.Fields(string(children)) {
		if worker, err := strconv.Atoi(field); err == nil {
			if err := unix.Kill(worker, unix.SIGKILL); err != nil {
				return fmt.Errorf("nginx: worker %d: %w", worker, err)
			}
		}
	}
	return nil
}

// ResetConnections resets every connection of nginx: the client receives an RST on each (ss(8), -K).
func (n *Nginx) ResetConnections() error {
	return n.lab.server.enter(func() error {
		return command("ss", "--kill", "--tcp", "state", "established", "sport", "=", strconv.Itoa(n.port))
	})
}

// Root is the folder that nginx serves.
func (n *Nginx) Root() string { return n.root }

// Requests returns nginx's log: the requests whose answers have ended.
func (n *Nginx) Requests() ([]Request, error) {
	return readRequests(filepath.Join(n.dir, "access.log"))
}

// Object returns the object of the given size, which the first call creates.
func (n *Nginx) Object(size Bytes) (Object, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o, ok := n.objects[size]; ok {
		return o, nil
	}
	o, err := writeObject(n.root, size)
	if err != nil {
		return Object{}, err
	}
	o.URL = n.url("http", OriginAddr.String(), n.port, size)
	n.objects[size] = o
	return o, nil
}

// NamedURL returns the object's URL with the origin's name instead of its address; it needs StartDNS.
func (n *Nginx) NamedURL(o Object) string { return n.url("http", OriginName, n.port, o.Size) }

// SecureURL returns the object's https URL at the origin's address. Clients must trust the lab's Certificate.
func (n *Nginx) SecureURL(o Object) string { return n.url("https", OriginAddr.String(), n.tls, o.Size) }

// NamedSecureURL is SecureURL with the origin's name; it needs StartDNS.
func (n *Nginx) NamedSecureURL(o Object) string { return n.url("https", OriginName, n.tls, o.Size) }

func (n *Nginx) url(scheme, host string, port int, size Bytes) string {
	if port != map[string]int{"http": 80, "https": 443}[scheme] {
		host += ":" + strconv.Itoa(port)
	}
	return scheme + "://" + host + "/" + size.String()
}
