package daemon

import (
	"testing"

	"github.com/tributary-http/tributary/internal/front/intercept"
)

// TestDistrusts: what a program has loaded, and how it begins TLS, shows whether it can trust the authority of run.
func TestDistrusts(t *testing.T) {
	const gnutls, openssl = "7f00-7f01 r-xp 0 08:01 1 /usr/lib/x86_64-linux-gnu/libgnutls.so.30\n", "7f02-7f03 r-xp 0 08:01 2 /usr/lib/libssl.so.3\n"
	for _, c := range []struct {
		path, files, arguments string
		limits, store          bool
		want                   intercept.Reason
	}{
		{path: "/usr/bin/lftp", files: gnutls, limits: true, want: intercept.OwnStore},
		{path: "/usr/bin/lftp", files: gnutls, want: intercept.OwnStore},
		{path: "/usr/bin/lftp", files: gnutls, limits: true, store: true},
		{path: "/usr/bin/octave-cli", files: gnutls + openssl, limits: true, want: intercept.OwnStore},
		{path: "/usr/bin/aria2c", files: gnutls + openssl},
		{path: "/usr/bin/curl", files: openssl},
		{path: "/usr/bin/curl", files: openssl, arguments: "curl\x00-O\x00https://a/", store: true},
		{path: "/usr/bin/curl", files: openssl, arguments: "curl\x00--pinnedpubkey\x00sha256//a\x00", store: true, want: intercept.OwnKey},
		{path: "/usr/bin/wget", files: gnutls, arguments: "wget\x00--pinnedpubkey=sha256//a\x00", limits: true, want: intercept.OwnKey},
		{path: "/usr/bin/wget", files: gnutls, limits: true},
		{path: "/usr/bin/ffmpeg", files: gnutls + openssl, limits: true},
		{path: "/usr/bin/python3.11", files: "7f-80 r-xp 0 08:01 3 /v/site-packages/pycurl.libs/libssl-1.so.3\n", want: intercept.OwnFile},
		{path: "/usr/bin/zypper", files: openssl + "7f-80 r-xp 0 08:01 3 /usr/lib/libzypp.so.1722\n", want: intercept.OwnFile},
		{path: "/usr/bin/zypper", files: openssl + "7f-80 r-xp 0 08:01 3 /usr/lib/libzypp.so.1722\n", store: true},
		{path: "/usr/bin/pacman", files: openssl + "7f-80 r-xp 0 08:01 3 /usr/lib/libalpm.so.13.0.2\n", want: intercept.OwnFile},
		{path: "/usr/bin/nix", files: gnutls + "7f-80 r-xp 0 08:01 3 /usr/lib/libnixstore.so\n", limits: true},
		{path: "/usr/bin/python3.11", files: gnutls + openssl + "7f-80 r-xp 0 08:01 3 /usr/lib/libgdal.so.32\n", limits: true},
		{path: "/usr/lib/firefox/firefox", files: gnutls + "7f-80 r-xp 0 08:01 3 /usr/lib/firefox/libxul.so\n", limits: true, store: true, want: intercept.Browser},
		{path: "/opt/chrome/chrome", files: gnutls + "7f-80 r--s 0 08:01 3 /opt/chrome/icudtl.dat\n", want: intercept.Browser},
		{path: "/usr/bin/ended"},
	} {
		if got := distrustOf(c.path, []byte(c.files), []byte(c.arguments), c.limits, c.store); got != c.want {
			t.Errorf("%s, %q, limits %v, store %v: %q, want %q", c.path, c.files, c.limits, c.store, got, c.want)
		}
	}
}
