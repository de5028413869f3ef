package use

import (
	"os"
	"strings"
	"testing"
)

// TestTrusted: a program whose own settings limit whom it accepts, or that has a client certificate, does not get the gateway.
func TestTrusted(t *testing.T) {
	for _, c := range []struct {
		program, path, text, variable, says string
	}{
		{program: "pip", path: "~/.config/pip/pip.conf", text: "[global]\ncert = FILE\n", says: "cert in "},
		{program: "pip", path: "~/.config/pip/pip.conf", text: "[global]\nclient-cert = FILE\n", says: "client certificate (client-cert in "},
		{program: "pip", variable: "PIP_CERT", says: "PIP_CERT"},
		{program: "apt", path: "/etc/apt/apt.conf.d/20own", text: "Acquire::https::CaInfo \"FILE\";\n", says: "CaInfo in "},
		{program: "apt", path: "/etc/apt/apt.conf.d/20own", text: "Acquire::https::SslCert \"FILE\";\n", says: "client certificate (SslCert in "},
		{program: "dnf", path: "/etc/yum.repos.d/a.repo", text: "[a]\nbaseurl=https://a.example/\nsslcacert=FILE\n", says: "sslcacert in "},
		{program: "dnf", path: "/etc/yum.repos.d/a.repo", text: "[a]\nbaseurl=https://a.example/\nsslclientcert=FILE\n", says: "client certificate"},
		{program: "conda", path: "~/.condarc", text: "ssl_verify: FILE\n", says: "ssl_verify in "},
		{program: "docker", path: "/etc/docker/certs.d/docker.io/ca.crt", text: "no certificate", says: "ca.crt in "},
		{program: "docker", path: "/etc/docker/certs.d/registry.example/ca.crt", text: "no certificate"},
		{program: "go", variable: "SSL_CERT_FILE", says: "SSL_CERT_FILE"},
	} {
		t.Run("R228 "+c.program+" "+c.says, func(t *testing.T) {
			m := newMachine(t, os.Getuid())
			if os.Getuid() != 0 && c.path != "" && strings.HasPrefix(c.path, "/") {
				t.Skip("needs root")
			}
			m.write("/etc/apt/sources.list", "deb https://deb.example/debian stable main\n")
			own := m.at("~/own.pem")
			m.write("~/own.pem", "no certificate")
			if c.path != "" {
				m.write(c.path, strings.ReplaceAll(c.text, "FILE", own))
			}
			if c.variable != "" {
				m.env[c.variable] = own
			}
			_, err := m.Plan(c.program)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			m.Force = true
			if r, err := m.Plan(c.program); err != nil || c.says != "" && !strings.Contains(strings.Join(r.Notes, " "), "no longer keeps to") {
				t.Errorf("with --force: %v, notes %q", err, r.Notes)
			}
		})
	}
}
