package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const certificate = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"

func folder(t *testing.T, base string) *Folder {
	t.Helper()
	f, err := NewFolder(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Remove() })
	return f
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func value(t *testing.T, env []string, name string) string {
	t.Helper()
	var found []string
	for _, e := range env {
		if n, v, _ := strings.Cut(e, "="); n == name {
			found = append(found, v)
		}
	}
	if len(found) > 1 {
		t.Errorf("%s is there %d times", name, len(found))
	}
	return strings.Join(found, " and ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEnvironment(t *testing.T) {
	system, own := write(t, "system"), write(t, "own\n")
	f := folder(t, t.TempDir())
	env, err := Environment([]string{
		"SSL_CERT_FILE=" + system, "AWS_CA_BUNDLE=" + own, "REQUESTS_CA_BUNDLE=/nonexistent", "http_proxy=http://other", "HTTPS_PROXY=http://other",
		"NO_PROXY=.lan", "KEEP=a=b", "WGETRC=" + write(t, "quiet = on"),
	}, f, "http://127.0.0.1:1", []byte(certificate))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"SSL_CERT_FILE": "system\n" + certificate, "CURL_CA_BUNDLE": "system\n" + certificate, "GIT_SSL_CAINFO": "system\n" + certificate,
		"AWS_CA_BUNDLE": "own\n" + certificate, "NODE_EXTRA_CA_CERTS": certificate,
		"WGETRC":     "quiet = on\nca_certificate = " + value(t, env, "SSL_CERT_FILE") + "\n",
		"APT_CONFIG": "Acquire::https::CAInfo \"" + value(t, env, "SSL_CERT_FILE") + "\";\n",
	} {
		path := value(t, env, name)
		if got := content(t, path); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 || filepath.Dir(path) != f.Path {
			t.Errorf("%s: %v, %v", path, is, err)
		}
	}
	for name, want := range map[string]string{
		"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1",
		"no_proxy": ".lan," + local, "NO_PROXY": ".lan," + local, "KEEP": "a=b", "REQUESTS_CA_BUNDLE": "/nonexistent",
	} {
		if got := value(t, env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if is, err := os.Stat(f.Path); err != nil || is.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", is, err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestNoSystemCertificates(t *testing.T) {
	if _, err := Environment([]string{"SSL_CERT_FILE=/nonexistent"}, folder(t, t.TempDir()), "", nil); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("error %v", err)
	}
}

// TestPrune: a folder whose process was killed is removed at the next start; a folder in use, or one that is not ours, stays.
func TestPrune(t *testing.T) {
	base := t.TempDir()
	used := folder(t, base)
	left := filepath.Join(base, folderPrefix+"left")
	elsewhere := t.TempDir()
	for _, path := range []string{left, filepath.Join(elsewhere, "kept")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, folderPrefix+"link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	second := folder(t, base)
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(base, e.Name()))
	}
	want := []string{used.Path, second.Path, link}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "kept")); err != nil {
		t.Error(err)
	}
}
