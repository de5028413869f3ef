package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/host/trust"
)

// caRig is a store of certificates in a folder, with an empty program to update it.
func caRig(t *testing.T) (store trust.Store, invoke func(args ...string) (code int, text string)) {
	t.Helper()
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	store = trust.Store{Folder: t.TempDir(), Update: "true"}
	return store, func(args ...string) (int, string) {
		t.Helper()
		var out, said strings.Builder
		a := &app{rawStdout: &out, rawStderr: &said, getenv: os.Getenv, store: store}
		code := a.run(t.Context(), append([]string{"ca"}, args...))
		return code, out.String() + said.String()
	}
}

func TestCA(t *testing.T) {
	store, ca := caRig(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"status"}, 1, "ca init"},
		{[]string{"init"}, 2, "--hosts"},
		{[]string{"init", "--hosts", "*"}, 1, `"*" is not a host name`},
		{[]string{"init", "--hosts", "example.com,example.org"}, 0, "nothing trusts it yet"},
		{[]string{"init", "--hosts", "example.com"}, 1, "ca remove"},
		{[]string{"status"}, 0, "trusted      no"},
	} {
		if code, text := ca(c.args...); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%v: %d, %q", c.args, code, text)
		}
	}
	files := func() int {
		all, err := os.ReadDir(store.Folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if files() != 0 {
		t.Error("init changes the store")
	}
	if os.Geteuid() != 0 {
		if code, text := ca("install"); code != exitPermission || !strings.Contains(text, "sudo") {
			t.Errorf("not as root: %d, %q", code, text)
		}
		return
	}
	for _, c := range []struct {
		args  []string
		says  string
		files int
	}{
		{[]string{"install"}, "trusts the authority for example.com, example.org", 1},
		{[]string{"install"}, "trusts", 1},
		{[]string{"status"}, "trusted      yes", 1},
		{[]string{"remove", filepath.Join(os.Getenv("STATE_DIRECTORY"), "ca.pem")}, "no longer trusts", 0},
		{[]string{"status"}, "trusted      no", 0},
		{[]string{"remove"}, "deleted", 0},
	} {
		if code, text := ca(c.args...); code != 0 || !strings.Contains(text, c.says) || files() != c.files {
			t.Errorf("%v: %d, %q, %d files", c.args, code, text, files())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("STATE_DIRECTORY"), "*.pem")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestCARefuses: only a certificate of an authority that is limited to some hosts gets into the store, and none if the store cannot
// be updated.
func TestCARefuses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	store, ca := caRig(t)
	free := filepath.Join(t.TempDir(), "free.pem")
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=free",
		"-keyout", os.DevNull, "-out", free).CombinedOutput()
	if err != nil {
		t.Skipf("openssl: %v: %s", err, out)
	}
	if code, text := ca("install", free); code != 1 || !strings.Contains(text, "limited to some hosts") {
		t.Errorf("%d, %q", code, text)
	}
	if code, text := ca("install", "/dev/zero"); code != 1 || !strings.Contains(text, "not a PEM certificate") {
		t.Errorf("%d, %q", code, text)
	}
	if code, text := ca("init", "--hosts", "example.com"); code != 0 {
		t.Fatal(text)
	}
	a := &app{rawStdout: io.Discard, rawStderr: io.Discard, getenv: os.Getenv, store: trust.Store{Folder: store.Folder, Update: "false"}}
	if code := a.run(t.Context(), []string{"ca", "install"}); code != exitFailure {
		t.Errorf("code %d", code)
	}
	if left, err := os.ReadDir(store.Folder); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSystemStore: in a copy of this system's store, every file that programs read is restored afterwards.
func TestSystemStore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	if _, err := exec.LookPath("update-ca-certificates"); err != nil {
		t.Skip("update-ca-certificates is missing: apt-get install ca-certificates")
	}
	if _, err := os.Stat(trust.SystemStore.Folder); err != nil {
		t.Skip(err)
	}
	if os.Getenv("TRIBUTARY_EMULATOR") != "" {
		t.Skip("the kernel cannot start the program again under an emulator")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// in a separate mount namespace, where both folders are copies
	cmd := exec.Command("unshare", "-m", "sh", "-ec", `
		for d in /etc/ssl/certs /usr/local/share/ca-certificates; do
			c=$(mktemp -d -p "$TMP"); cp -a $d/. $c; mount --bind $c $d
		done
		list() { cd /etc/ssl/certs; ls -lA --time-style=+ | sed 1d; sha256sum ca-certificates.crt; ls -A /usr/local/share/ca-certificates; cd /; }
		update-ca-certificates >/dev/null 2>&1 # as the system is, if it was not up to date
		list >$TMP/before
		$SELF -test.run=TestSystemStorePart
		list >$TMP/after
		diff $TMP/before $TMP/after`)
	cmd.Env = append(os.Environ(), "TMP="+t.TempDir(), "SELF="+self, "TRIBUTARY_STORE_PART=1", "STATE_DIRECTORY="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestSystemStorePart(t *testing.T) {
	if os.Getenv("TRIBUTARY_STORE_PART") == "" {
		t.Skip("a part of TestSystemStore")
	}
	a := &app{rawStdout: io.Discard, rawStderr: os.Stderr, getenv: os.Getenv, store: trust.SystemStore}
	for _, args := range [][]string{{"init", "--hosts", "example.com"}, {"install"}} {
		if code := a.run(t.Context(), append([]string{"ca"}, args...)); code != 0 {
			t.Fatalf("%v: %d", args, code)
		}
	}
	if out, err := exec.Command("openssl", "verify", filepath.Join(os.Getenv("STATE_DIRECTORY"), "ca.pem")).CombinedOutput(); err != nil {
		t.Errorf("the system does not trust it: %v: %s", err, out)
	}
	if code := a.run(t.Context(), []string{"ca", "remove"}); code != 0 {
		t.Errorf("remove: %d", code)
	}
}
