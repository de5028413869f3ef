package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tributary-http/tributary/internal/host/supervise"
)

// StoreBinds makes copies of the files in which the system keeps the certificates that it trusts, with one more
// certificate. Programs that trust these files then accept what the proxy accepts, so a file that lacks one of roots
// has no copy.
func StoreBinds(f *Folder, certificate []byte, roots Roots) (binds []supervise.Bind, err error) {
	seen := map[string]bool{}
	for _, name := range rootFiles {
		target, err := filepath.EvalSymlinks(name)
		if err != nil || seen[target] {
			continue
		}
		seen[target] = true
		text, err := os.ReadFile(target)
		if err != nil || !roots.within(certificatesOf(text)) {
			continue
		}
		source, err := f.write("store-"+strconv.Itoa(len(binds))+".pem", text, certificate)
		if err == nil {
			err = os.Chmod(source, 0o644) // a command of root may have programs of other users
		}
		if err != nil {
			return nil, err
		}
		binds = append(binds, supervise.Bind{Source: source, Target: target})
	}
	if len(binds) == 0 {
		return nil, errors.New("this system keeps the certificates that it trusts in no file that is known, or SSL_CERT_FILE names other ones")
	}
	return binds, nil
}
