package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// The ports of origins other than nginx.
const (
	otherPort    = 8200 // http
	otherTLSPort = 8201 // https
)

// origin is a program that serves nginx's objects too.
type origin struct {
	name   string
	needs  [2]string // command and Debian package
	ranges bool      // whether it supports Range
	tls    bool      // whether it listens at otherTLSPort, with HTTP/2
	// argv writes the configuration into dir and returns the command that serves root.
	argv func(r *rig, dir, root string, cert netlab.Certificate) []string
}

const python = "/usr/bin/python3" // other Pythons do not see Debian's packages

var origins = []origin{
	{"Apache httpd", [2]string{"apache2", "apache2-bin"}, true, true, apache},
	{"lighttpd", [2]string{"lighttpd", "lighttpd lighttpd-mod-openssl"}, true, true, lighttpd},
	{"Caddy", [2]string{"caddy", "caddy, or make matrix"}, true, true, caddy},
	{"Python http.server", [2]string{python, "python3"}, false, false, pythonServer},
}

// run starts the origin in the server namespace and waits until it listens. It is killed at the test's end.
func (o origin) run(r *rig) {
	r.Helper()
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	argv := o.argv(r, filepath.Dir(r.file()), r.nginx.Root(), cert)
	ended := r.background(argv...)
	r.waitForOrigin(otherPort, ended)
	if o.tls {
		r.waitForOrigin(otherTLSPort, ended)
	}
}

// url returns the address of an object at the origin.
func (o origin) url(scheme string, object netlab.Object) string {
	port := map[string]int{"http": otherPort, "https": otherTLSPort}[scheme]
	return fmt.Sprintf("%s://%s:%d/%s", scheme, netlab.OriginName, port, object.Size)
}

// background starts a program in the server namespace, and returns a channel that is closed when it ends. It is killed,
// along with its child processes, at the test's end; its output is shown if the test fails.
func (r *rig) background(argv ...string) (ended <-chan struct{}) {
	r.Helper()
	// not the test's own context: the program under test ends before its peers
	cmd := r.lab.Server(context.WithoutCancel(r.ctx), argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "HOME="+r.lab.Dir, "XDG_DATA_HOME="+r.lab.Dir, "XDG_CONFIG_HOME="+r.lab.Dir)
	if err := cmd.Start(); err != nil {
		r.Fatalf("%s: %v", argv[0], err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed, so its exit status means nothing
		close(done)
	}()
	r.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		<-done
		if r.Failed() {
			r.Logf("%s said:\n%s", argv[0], said.Bytes()[:min(said.Len(), 4000)])
		}
	})
	return done
}

// waitForOrigin waits until something listens at the origin's port.
func (r *rig) waitForOrigin(port int, ended <-chan struct{}) {
	r.Helper()
	addr := net.JoinHostPort(netlab.OriginAddr.String(), strconv.Itoa(port))
	r.until(addr+" listens", func() bool {
		select {
		case <-ended:
			r.Fatalf("nothing will ever listen at %s: the program has ended", addr)
		default:
		}
		conn, err := r.dialOrigin(addr)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// dialOrigin dials in the server namespace.
func (r *rig) dialOrigin(addr string) (conn net.Conn, err error) {
	err = r.lab.InServer(func() error {
		conn, err = net.DialTimeout("tcp", addr, time.Second)
		return err
	})
	return conn, err
}

func apache(r *rig, dir, root string, cert netlab.Certificate) []string {
	conf := filepath.Join(dir, "httpd.conf")
	r.write(conf, []byte(netlab.ApacheConfig(dir, root, otherPort, otherTLSPort, cert)))
	return []string{"apache2", "-DFOREGROUND", "-f", conf}
}

func lighttpd(r *rig, dir, root string, cert netlab.Certificate) []string {
	r.write(filepath.Join(dir, "lighttpd.conf"), fmt.Appendf(nil, `server.modules = ("mod_openssl")
server.document-root = %[1]q
server.port = %[2]d
mimetype.assign = ("" => "application/octet-stream")
$SERVER["socket"] == ":%[3]d" {
	ssl.engine = "enable"
	ssl.pemfile = %[4]q
	ssl.privkey = %[5]q
}
`, root, otherPort, otherTLSPort, cert.Chain, cert.Key))
	return []string{"lighttpd", "-D", "-f", filepath.Join(dir, "lighttpd.conf")}
}

func caddy(r *rig, dir, root string, cert netlab.Certificate) []string {
	type object map[string]any
	type list []any
	server := func(port int, more object) object {
		s := object{
			"listen":          list{fmt.Sprintf(":%d", port)},
			"routes":          list{object{"handle": list{object{"handler": "file_server", "root": root}}}},
			"automatic_https": object{"disable": true},
			"protocols":       list{"h1", "h2"},
		}
		for k, v := range more {
			s[k] = v
		}
		return s
	}
	conf, err := json.Marshal(object{
		"admin":   object{"disabled": true},
		"storage": object{"module": "file_system", "root": dir},
		"apps": object{
			"http": object{"servers": object{
				"http":  server(otherPort, nil),
				"https": server(otherTLSPort, object{"tls_connection_policies": list{object{}}}),
			}},
			"tls": object{"certificates": object{"load_files": list{
				object{"certificate": cert.Chain, "key": cert.Key},
			}}},
		},
	})
	if err != nil {
		r.Fatal(err)
	}
	r.write(filepath.Join(dir, "caddy.json"), conf)
	return []string{"caddy", "run", "--config", filepath.Join(dir, "caddy.json")}
}

func pythonServer(_ *rig, _, root string, _ netlab.Certificate) []string {
	return []string{python, "-m", "http.server", strconv.Itoa(otherPort), "--directory", root}
}
