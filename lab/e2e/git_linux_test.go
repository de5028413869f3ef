package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gitPort is the port of git's own server side, git http-backend(1).
const gitPort = 8210

// git clones over the smart protocol and over the dumb one, whose packs are files, and pushes 3 MB, which git sends in
// chunks.
func (r *rig) git() {
	r.Helper()
	need(r.T, "git", "git")
	bare := filepath.Join(r.nginx.Root(), "repo.git")
	clone := filepath.Join(filepath.Dir(r.file()), "first")
	r.local("git", "init", "-q", "--bare", "-b", "main", bare)
	r.local("git", "-C", bare, "config", "http.receivepack", "true")
	r.local("git", "init", "-q", "-b", "main", clone)
	r.write(filepath.Join(clone, "a"), r.content(3_000_000))
	r.commit(clone, "a")
	r.local("git", "-C", clone, "push", "-q", bare, "main")
	r.local("git", "-C", bare, "repack", "-q", "-a", "-d")
	r.local("git", "-C", bare, "update-server-info")

	smart := r.startGit(filepath.Dir(bare)) + "/repo.git"
	dumb := r.nginx.NamedURL(r.object(10_000))
	dumb = dumb[:strings.LastIndexByte(dumb, '/')] + "/repo.git"
	get := func(url, proxy string) (dir string) {
		r.Helper()
		dir = filepath.Join(filepath.Dir(r.file()), "clone")
		r.ok(r.viaEnv(proxy, "git", "clone", "-q", url, dir))
		r.local("git", "-C", dir, "fsck", "--strict")
		if !bytes.Equal(r.read(filepath.Join(dir, "a")), r.content(3_000_000)) {
			r.Errorf("%s, proxy %q: wrong bytes", url, proxy)
		}
		return dir
	}
	get(smart, "")
	dir := get(smart, proxyURL)
	get(dumb, "")
	r.overBoth(func() { get(dumb, proxyURL) })

	r.write(filepath.Join(dir, "b"), r.content(3_000_001))
	r.commit(dir, "b")
	r.ok(r.viaEnv(proxyURL, "git", "-C", dir, "push", "-q", "origin", "main"))
	r.local("git", "-C", bare, "fsck", "--strict")
	if head, want := r.local("git", "-C", bare, "rev-parse", "main"), r.local("git", "-C", dir, "rev-parse", "HEAD"); head != want {
		r.Errorf("pushed %s, but the origin has %s", want, head)
	}
}

func (r *rig) commit(dir, file string) {
	r.Helper()
	r.local("git", "-C", dir, "add", file)
	r.local("git", "-C", dir, "-c", "user.name=e2e", "-c", "user.email=e2e@example.org", "commit", "-q", "-m", file)
}

// local runs a program outside the lab, waits for its end, and returns its output.
func (r *rig) local(name string, args ...string) string {
	r.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "HOME="+r.lab.Dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// startGit serves the repositories in a folder over smart HTTP and returns its URL.
func (r *rig) startGit(root string) string {
	r.Helper()
	return r.serveHTTP(gitPort, r.gitBackend(root))
}

func (r *rig) gitBackend(root string) http.Handler {
	r.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(r.local("git", "--exec-path")), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + r.lab.Dir},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		req.Body = io.NopCloser(bytes.NewReader(body)) // CGI requires the length (RFC 3875 section 4.1.2)
		req.ContentLength, req.TransferEncoding = int64(len(body)), nil
		backend.ServeHTTP(w, req)
	})
}
