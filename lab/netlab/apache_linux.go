package netlab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// apachePort is where StartApache's origin listens.
const apachePort = 8082

// Apache is a running Apache httpd in the server namespace, with its own defaults: it closes a connection after 100
// requests, for example.
type Apache struct {
	*service

	root, log string
}

// StartApache starts Apache, which serves the objects that Object makes, and waits until it listens. It speaks plain
// HTTP/1.1 and runs until Stop or the lab's Close.
func (l *Lab) StartApache(ctx context.Context) (*Apache, error) {
	dir, err := os.MkdirTemp(l.Dir, "apache")
	if err != nil {
		return nil, fmt.Errorf("apache: %w", err)
	}
	a := &Apache{root: filepath.Join(l.Dir, "apache-objects"), log: filepath.Join(dir, "access.log")}
	conf := filepath.Join(dir, "httpd.conf")
	text := ApacheConfig(dir, a.root, apachePort, 0, Certificate{}) + apacheLog(a.log)
	for _, err := range []error{
		os.Chmod(dir, 0o755), os.MkdirAll(a.root, 0o755), os.WriteFile(conf, []byte(text), 0o644),
	} {
		if err != nil {
			return nil, fmt.Errorf("apache: %w", err)
		}
	}
	a.service, err = l.startService(ctx, []string{"apache2", "-DFOREGROUND", "-f", conf}, apachePort)
	if err != nil {
		return nil, fmt.Errorf("apache: %w", err)
	}
	return a, nil
}

// Object makes the object of the given size.
func (a *Apache) Object(size Bytes) (Object, error) {
	o, err := writeObject(a.root, size)
	o.URL = "http://" + OriginAddr.String() + ":" + strconv.Itoa(apachePort) + "/" + size.String()
	return o, err
}

// Requests returns Apache's log: the requests whose answers have ended.
func (a *Apache) Requests() ([]Request, error) { return readRequests(a.log) }

// apacheLog writes the access log in the lab's format; the client's port distinguishes its connections.
func apacheLog(path string) string {
	fields := []string{
		"%m", "%>s", "%{Range}i", "%a", "%B", "%{remote}p", "%H", "%{begin:sec}t.%{begin:usec_frac}t", "0",
	}
	return fmt.Sprintf("LogFormat %q lab\nCustomLog %s lab\n", strings.Join(fields, "\t"), path)
}

// ApacheConfig returns a configuration for Debian's Apache that uses defaults wherever there are any. Its files go to
// dir; tlsPort 0 leaves out https, which has HTTP/2.
func ApacheConfig(dir, root string, port, tlsPort int, cert Certificate) string {
	var conf strings.Builder
	modules := []string{"mpm_event", "authz_core"}
	if tlsPort != 0 {
		modules = append(modules, "http2", "socache_shmcb", "ssl")
	}
	for _, module := range modules {
		fmt.Fprintf(&conf, "LoadModule %s_module /usr/lib/apache2/modules/mod_%[1]s.so\n", module)
	}
	fmt.Fprintf(&conf, `ServerRoot %[1]s
ServerName %[2]s
PidFile %[1]s/pid
DefaultRuntimeDir %[1]s
ErrorLog /dev/stderr
User www-data
Group www-data
Listen %[3]d
DocumentRoot %[4]s
<Directory %[4]s>
	Require all granted
</Directory>
`, dir, OriginName, port, root)
	if tlsPort != 0 {
		fmt.Fprintf(&conf, `Listen %[1]d
<VirtualHost *:%[1]d>
	SSLEngine on
	SSLCertificateFile %[2]s
	SSLCertificateKeyFile %[3]s
	Protocols h2 http/1.1
</VirtualHost>
`, tlsPort, cert.Chain, cert.Key)
	}
	return conf.String()
}
