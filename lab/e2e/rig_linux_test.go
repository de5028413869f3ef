package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

const proxyURL = "http://" + netlab.ProxyAddr

// testTime bounds a test: a test that hangs fails and shows the program's log.
const testTime = 4 * time.Minute

// matrixTime is the same for make matrix, whose clients may be large programs.
const matrixTime = 15 * time.Minute

// matrix reports whether to run tests that are too long for make test.
func matrix() bool { return os.Getenv("TRIBUTARY_MATRIX") != "" }

// binaryDir is where the program under test is built.
var binaryDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if binaryDir, err = os.MkdirTemp("", "tributary-e2e-"); err == nil {
			err = os.Chmod(binaryDir, 0o755) // other users run the program, too
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		defer os.RemoveAll(binaryDir)
		os.Setenv("GORACE", "atexit_sleep_ms=0") // the program is stopped often
		return m.Run()
	}())
}

// binary builds the program under test, and plainBinary builds it without the race detector, which takes several times the memory and
// the start's time. Each is built once, for the first test that is not skipped.
var (
	binary      = sync.OnceValues(func() (string, error) { return build("tributary", buildFlags...) })
	plainBinary = sync.OnceValues(func() (string, error) {
		if len(buildFlags) == 0 {
			return binary()
		}
		return build("tributary-plain")
	})
)

// build builds the program under test. TRIBUTARY_BINARY names another build instead, such as the one for phones.
//
// Flags that change how packages are compiled, such as -trimpath, would compile everything once more.
func build(name string, flags ...string) (string, error) {
	if path := os.Getenv("TRIBUTARY_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(binaryDir, name)
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), "./cmd/tributary")...)
	build.Dir = filepath.Join("..", "..") // the product's module
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// quick returns two links that carry the objects of most tests in less than a second.
func quick() netlab.Scenario {
	return netlab.Scenario{Name: "quick", Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 60*netlab.Mbit, 10*time.Millisecond),
		netlab.Symmetric("lte", 40*netlab.Mbit, 30*time.Millisecond),
	}}
}

// equal returns two links that carry 5 MB in a second; events count from the request.
func equal(events ...netlab.Event) netlab.Scenario {
	return netlab.Scenario{Name: "equal", Events: events, Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 20*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 20*netlab.Mbit, 40*time.Millisecond),
	}}
}

func event(at time.Duration, link, what string) netlab.Event {
	return netlab.Event{At: at, Link: link, What: what}
}

// shipped returns one of the scenarios that the benchmarks use.
func shipped(t *testing.T, name string) netlab.Scenario {
	t.Helper()
	sc, err := netlab.Load(filepath.Join("..", "..", "testdata", "scenarios", name+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	sc.Objects = nil
	return sc
}

// rig is a lab with nginx, a name server and the program under test.
type rig struct {
	*testing.T
	ctx     context.Context
	lab     *netlab.Lab
	nginx   *netlab.Nginx
	dns     *netlab.DNS
	proxy   *netlab.Tributary
	options netlab.TributaryOptions
	stopped bool // the test itself has ended the program
}

// newRig makes a rig without the program.
func newRig(t *testing.T, sc netlab.Scenario, o netlab.NginxOptions) *rig {
	t.Helper()
	netlab.Require(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: apt-get install curl")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	limit := testTime
	if matrix() {
		limit = matrixTime
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	l, err := netlab.New(ctx, sc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{T: t, ctx: ctx, lab: l, options: netlab.TributaryOptions{Binary: path}}
	if r.nginx, err = l.StartNginx(ctx, o); err != nil {
		t.Fatal(err)
	}
	if r.dns, err = l.StartDNS(); err != nil {
		t.Fatal(err)
	}
	return r
}

// start makes a rig with the program running on its defaults.
func start(t *testing.T, sc netlab.Scenario) *rig {
	t.Helper()
	r := newRig(t, sc, netlab.NginxOptions{})
	r.serve()
	return r
}

// serve starts the program. At the test's end the program must exit successfully and without a data race.
func (r *rig) serve() {
	r.Helper()
	r.options.Args = append(r.options.Args, "--log-level", "debug")
	var err error
	// not the test's own context, which ends before the program is stopped
	if r.proxy, err = r.lab.StartTributary(context.WithoutCancel(r.ctx), r.options); err != nil {
		r.Fatal(err)
	}
	proxy := r.proxy
	r.Cleanup(func() {
		if err := proxy.Stop(); err != nil && !r.stopped {
			r.Error(err)
		}
		said := proxy.Said()
		if strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic:") {
			r.Error("the program raced or panicked")
		}
		if r.Failed() {
			r.Logf("tributary said:\n%s", said)
		}
	})
}

// on lets the rig report to a subtest.
func (r *rig) on(t *testing.T) *rig {
	sub := *r
	sub.T = t
	return &sub
}

func (r *rig) object(size netlab.Bytes) netlab.Object {
	r.Helper()
	o, err := r.nginx.Object(size)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// ran is the result of a client.
type ran struct {
	body   []byte // its standard output
	said   string // its standard error
	code   int    // exit code
	failed error  // nil if code is 0
}

// client runs a program in the client namespace and waits for its end.
func (r *rig) client(name string, args ...string) ran {
	r.Helper()
	if err := r.lab.Forget(); err != nil {
		r.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := r.lab.Client(r.ctx, name, args...)
	cmd.Env = append(os.Environ(), "HOME="+r.lab.Dir, "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.Fatalf("%s: %v", name, err)
	}
	return ran{out.Bytes(), said.String(), cmd.ProcessState.ExitCode(), err}
}

// curl runs curl through the proxy.
func (r *rig) curl(args ...string) ran {
	r.Helper()
	return r.client("curl", append([]string{"-sS", "-x", proxyURL}, args...)...)
}

// ok fails the test if the client did.
func (r *rig) ok(c ran) ran {
	r.Helper()
	if c.failed != nil {
		r.Fatalf("%v: %s", c.failed, c.said)
	}
	return c
}

// download fetches an object with curl through the proxy and checks its bytes.
func (r *rig) download(url string, o netlab.Object, args ...string) {
	r.Helper()
	r.isObject(r.ok(r.curl(append([]string{"--fail", url}, args...)...)).body, o)
}

func (r *rig) isObject(body []byte, o netlab.Object) {
	r.Helper()
	if got := sha256.Sum256(body); hex.EncodeToString(got[:]) != o.SHA256 {
		r.Errorf("wrong bytes: %d of %d", len(body), o.Size)
	}
}

// file returns the path of a new file for a client to write.
func (r *rig) file() string {
	r.Helper()
	dir, err := os.MkdirTemp(r.lab.Dir, "file-")
	if err != nil {
		r.Fatal(err)
	}
	return filepath.Join(dir, "file")
}

func (r *rig) read(path string) []byte {
	r.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func (r *rig) metrics() netlab.Metrics {
	r.Helper()
	m, err := r.proxy.Metrics(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// part is the divisor for the part of an object, 1/50, that a link must carry to count as used in a download. The
// benchmarks measure how much more it carries: on a busy machine a link may join late.
const part = 50

// carried returns the packets and bytes of both directions that have entered a link.
func (r *rig) carried(link string) (packets, size int64) {
	r.Helper()
	down, up, err := r.lab.Link(link).Counters()
	if err != nil {
		r.Fatal(err)
	}
	return down.Packets + up.Packets, down.Bytes + up.Bytes
}

// settle waits until the links are silent.
func (r *rig) settle() {
	r.Helper()
	if err := r.lab.Settle(r.ctx); err != nil {
		r.Fatal(err)
	}
}

// until waits for a condition.
func (r *rig) until(what string, met func() bool) {
	r.Helper()
	for tick := time.Tick(5 * time.Millisecond); !met(); {
		select {
		case <-tick:
		case <-r.ctx.Done():
			r.Fatalf("waited in vain until %s", what)
		}
	}
}

// play downloads an object by its named URL through the proxy while the scenario's events happen, and checks its bytes.
func (r *rig) play(size netlab.Bytes) netlab.Played {
	r.Helper()
	o := r.object(size)
	p, err := r.lab.Play(r.ctx, r.proxy, r.nginx.NamedURL(o))
	if err != nil {
		r.Fatal(err)
	}
	if !p.Is(o) {
		r.Errorf("wrong bytes: %d of %d", p.Bytes, o.Size)
	}
	if len(p.Events) != len(r.lab.Scenario.Events) {
		r.Errorf("the download ended after %d of %d events", len(p.Events), len(r.lab.Scenario.Events))
	}
	return p
}

// shares returns each link's share of the body.
func shares(p netlab.Played) map[string]float64 {
	share := map[string]float64{}
	for _, l := range p.Links {
		share[l.Name] = float64(l.Received) / float64(p.Bytes)
	}
	return share
}
