package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// fetching is a running `tributary get`.
type fetching struct {
	*rig
	cmd  *exec.Cmd
	out  bytes.Buffer
	said bytes.Buffer
}

// getting starts `tributary get` with further arguments.
func (r *rig) getting(args ...string) *fetching {
	r.Helper()
	cert, err := r.lab.Certificate()
	if err != nil {
		r.Fatal(err)
	}
	if err := r.lab.Forget(); err != nil {
		r.Fatal(err)
	}
	args = append([]string{"get", "--cacert", cert.CA}, args...)
	for _, name := range r.lab.LinkNames() {
		args = append(args, "--link", name)
	}
	f := &fetching{rig: r, cmd: r.lab.Client(r.ctx, r.options.Binary, args...)}
	f.cmd.Env = append(os.Environ(), "HOME="+r.lab.Dir)
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.said
	if err := f.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return f
}

// ended waits for the end and fails the test unless the exit code and the output are the wanted ones.
func (f *fetching) ended(code int, says ...string) {
	f.Helper()
	_ = f.cmd.Wait() // the code shows it
	said := f.said.String()
	if got := f.cmd.ProcessState.ExitCode(); got != code || strings.Contains(said, "DATA RACE") {
		f.Fatalf("exit code %d, want %d: %s", got, code, said)
	}
	for _, s := range says {
		if !strings.Contains(said, s) {
			f.Errorf("%q lacks %q", said, s)
		}
	}
}

// has waits until a file has at least size bytes.
func (r *rig) has(path string, size int64) {
	r.Helper()
	r.until(path+" grows", func() bool {
		st, err := os.Stat(path)
		return err == nil && st.Size() >= size
	})
}

// claim is the path of the file in the state folder by which Tributary recognizes a .part file as its own.
func (r *rig) claim(file string) string {
	sum := sha256.Sum256([]byte(file + ".part"))
	return filepath.Join(r.lab.Dir, ".local", "state", "tributary", "partial", hex.EncodeToString(sum[:16]))
}

// kept returns the number of bytes at the start of a .part file without a gap, according to the first line of its
// claim; 0 if there is no claim.
func (r *rig) kept(file string) (n int64) {
	r.Helper()
	text, err := os.ReadFile(r.claim(file))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if _, serr := fmt.Sscan(string(text), &n); err != nil || serr != nil {
		r.Fatalf("%v, %v", err, serr)
	}
	if st, err := os.Stat(file + ".part"); err != nil || st.Size() < n {
		r.Errorf("%d bytes are recorded: %v, %v", n, st, err)
	}
	return n
}

// report is the output of get --json.
type report struct {
	Size, Resumed, Waste int64
	Checksum             string
	Links                []struct {
		Name        string
		Bytes       int64
		RadioJoules float64 `json:"radio_joules"`
		Spared      string
	}
}

func (f *fetching) report() report {
	f.Helper()
	var j report
	if err := json.Unmarshal(f.out.Bytes(), &j); err != nil {
		f.Fatalf("%v: %s", err, f.out.String())
	}
	return j
}

func TestGet(t *testing.T) {
	t.Parallel()
	r := newRig(t, quick(), netlab.NginxOptions{})
	o := r.object(20_000_000)
	for _, url := range []string{r.nginx.NamedURL(o), r.nginx.NamedSecureURL(o)} {
		file := r.file()
		f := r.getting("--json", "-o", file, "--checksum", "sha256:"+o.SHA256, url)
		f.ended(0)
		r.isObject(r.read(file), o)
		j := f.report()
		var sum int64
		for _, l := range j.Links {
			if sum += l.Bytes; l.Bytes < int64(o.Size)/part {
				t.Errorf("%s: %+v", url, j)
			}
		}
		if j.Size != int64(o.Size) || sum != j.Size+j.Waste || j.Checksum != "sha256:"+o.SHA256 {
			t.Errorf("%s: %+v", url, j)
		}
	}
	r.getting("-o", r.file(), r.nginx.NamedURL(o)+"none").ended(6, "404", "check the URL")
	r.getting("-o", r.file(), "http://no-such-name.lab/x").ended(5, "check the spelling of the host name")
	r.getting("-o", r.file(), strings.Replace(r.nginx.NamedSecureURL(o), netlab.OriginName, "other.lab", 1)).ended(5)
	c := r.client(r.options.Binary, "get", "--link", "wifi", "-o", r.file(), r.nginx.NamedSecureURL(o))
	if c.code != 7 || !strings.Contains(c.said, "--cacert") {
		t.Errorf("a certificate that nobody vouches for: exit code %d, %s", c.code, c.said)
	}
}

// A download that is stopped, by whatever means, resumes where it was.
func TestGetResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t, equal(), netlab.NginxOptions{})
	o := r.object(15_000_000)
	for _, secure := range []bool{false, true} {
		url := r.nginx.NamedURL(o)
		if secure {
			url = r.nginx.NamedSecureURL(o)
		}
		file := r.file()
		var kept int64
		for _, stop := range []struct {
			by   unix.Signal
			code int
		}{{unix.SIGINT, 130}, {unix.SIGKILL, -1}} {
			f := r.getting("--resume", "-o", file, url)
			r.until(file+".part grows", func() bool { return r.kept(file) >= kept+3_000_000 })
			if err := f.cmd.Process.Signal(stop.by); err != nil {
				t.Fatal(err)
			}
			f.ended(stop.code)
			if _, err := os.Stat(file); err == nil {
				t.Fatal("the file is there before it is complete")
			}
			before := kept
			if kept = r.kept(file); kept <= before || kept >= int64(o.Size) {
				t.Fatalf("%d bytes are kept, %d before: the test shows nothing", kept, before)
			}
			if stop.by == unix.SIGINT && !strings.Contains(f.said.String(), "--resume") {
				t.Errorf("it does not say how to resume: %s", f.said.String())
			}
		}
		f := r.getting("--json", "--resume", "-o", file, url)
		f.ended(0)
		r.isObject(r.read(file), o)
		if j := f.report(); j.Resumed != kept || j.Size != int64(o.Size) {
			t.Errorf("%+v, after %d bytes", j, kept)
		}
		if _, err := os.Stat(r.claim(file)); err == nil {
			t.Error("the claim is left")
		}
	}
}

func TestGetSurvivesALink(t *testing.T) {
	t.Parallel()
	r := newRig(t, equal(), netlab.NginxOptions{})
	o := r.object(15_000_000)
	file := r.file()
	f := r.getting("-o", file, r.nginx.NamedSecureURL(o))
	r.has(file+".part", 3_000_000)
	if err := r.lab.Link("wifi").Down(); err != nil {
		t.Fatal(err)
	}
	f.ended(0, "wifi", "lte")
	r.isObject(r.read(file), o)
}

// TestGetMaxLinks: a download over at most one link uses no other one, until that one fails.
func TestGetMaxLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, equal(), netlab.NginxOptions{})
	o := r.object(15_000_000)
	for _, down := range []bool{false, true} {
		file := r.file()
		f := r.getting("--max-links", "1", "--json", "-o", file, r.nginx.NamedURL(o))
		if r.has(file+".part", 3_000_000); down {
			if err := r.lab.Link("wifi").Down(); err != nil {
				t.Fatal(err)
			}
		}
		f.ended(0)
		r.isObject(r.read(file), o)
		bytes := map[string]int64{}
		for _, l := range f.report().Links {
			bytes[l.Name] = l.Bytes
		}
		if bytes["wifi"] < 3_000_000 || (bytes["lte"] > 0) != down {
			t.Errorf("wifi goes down: %v, bytes: %v", down, bytes)
		}
	}
}

// With all links gone it waits for the configured time, says so, and keeps its bytes.
func TestGetLosesAllLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, equal(), netlab.NginxOptions{})
	o := r.object(15_000_000)
	file := r.file()
	config := file + ".toml"
	r.write(config, []byte("wait_for_link = \"1s\"\n"))
	f := r.getting("--config", config, "-o", file, r.nginx.NamedURL(o))
	r.has(file+".part", 3_000_000)
	for _, l := range r.lab.Links() {
		if err := l.Down(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	f.ended(5, "--resume")
	if took := time.Since(began); took > slack*10*time.Second {
		t.Errorf("it gave up after %s", took)
	}
}
