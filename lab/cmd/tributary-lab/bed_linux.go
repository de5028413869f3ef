package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// origin is a server of the object.
type origin interface {
	Object(size netlab.Bytes) (netlab.Object, error)
	Requests() ([]netlab.Request, error)
}

// bed is a lab set up for the contenders.
type bed struct {
	lab       *netlab.Lab
	origin    origin
	object    netlab.Object
	warm      netlab.Object // a smaller object, if object is larger than maxWarm
	mptcp     origin        // nil if no contender needs it
	viaMPTCP  netlab.Object
	ca        string // path of the certificate that https clients trust
	unlimited string // URL of the same object at an origin that limits no connection, "" = object's
	options   benchOptions
	lanes     *laneRelay    // nil until a contender needs it
	uploads   *uploadOrigin // nil if objects are downloaded
}

// drainTime bounds the wait for bytes that are still on the links after a download and count as the contender's waste.
const drainTime = 3 * time.Second

func newBed(ctx context.Context, l *netlab.Lab, size netlab.Bytes, o benchOptions) (*bed, error) {
	b := &bed{lab: l, options: o}
	cert, err := l.Certificate()
	if err != nil {
		return nil, err
	}
	b.ca = cert.CA
	if b.origin, b.object, err = b.start(ctx, o.origin, size, netlab.NginxOptions{NoHTTP2: o.http1}); err != nil {
		return nil, err
	}
	if _, err := l.StartDNS(); err != nil {
		return nil, err
	}
	if o.upload {
		b.uploads, err = b.startUploads(cert)
		return b, err
	}
	if size > maxWarm && o.https {
		if b.warm, err = b.objectAt(b.origin, maxWarm); err != nil {
			return nil, err
		}
	}
	if l.Scenario.MPTCP {
		b.mptcp, b.viaMPTCP, err = b.start(ctx, "nginx", size,
			netlab.NginxOptions{Port: mptcpPort, TLSPort: mptcpTLSPort, NoHTTP2: o.http1, MPTCP: true})
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// start starts an origin of a kind and makes the object there.
func (b *bed) start(ctx context.Context, kind string, size netlab.Bytes,
	o netlab.NginxOptions,
) (at origin, object netlab.Object, err error) {
	switch kind {
	case "", "nginx":
		at, err = b.lab.StartNginx(ctx, o)
	case "apache":
		at, err = b.lab.StartApache(ctx)
	case "brokenpipe":
		at, err = b.lab.StartBrokenPipe()
	default:
		at, err = b.startLimited(ctx, kind, size, o)
	}
	if err == nil {
		object, err = b.objectAt(at, size)
	}
	return at, object, err
}

// unlimitedPort and unlimitedTLSPort are where an origin serves the same objects without limits.
const unlimitedPort, unlimitedTLSPort = 8088, 8448

// pacedPort is the first port of a paced origin.
const pacedPort = 8090

// startLimited starts an nginx that limits its clients: paced:RATE, paced:RATE+BURST, smooth:RATE, or directives; and
// the first time, one without limits.
func (b *bed) startLimited(ctx context.Context, kind string, size netlab.Bytes, o netlab.NginxOptions) (origin, error) {
	bad := func(err error) (origin, error) { return nil, fmt.Errorf("--origin %s: %w", kind, err) }
	name, limit, ok := strings.Cut(kind, ":")
	if !ok || name != "paced" && name != "smooth" && name != "nginx" {
		return bad(errors.New("want " + originHelp))
	}
	if b.unlimited == "" {
		free, err := b.lab.StartNginx(ctx, netlab.NginxOptions{Port: unlimitedPort, TLSPort: unlimitedTLSPort})
		if err != nil {
			return nil, err
		}
		object, err := b.objectAt(free, size)
		if err != nil {
			return nil, err
		}
		b.unlimited = object.URL
	}
	if name == "nginx" {
		o.Directives, o.HTTP = limit, "limit_conn_zone $binary_remote_addr zone=address:1m;"
		return b.lab.StartNginx(ctx, o)
	}
	rate, burst, _ := strings.Cut(limit, "+")
	p := netlab.Pace{Smooth: name == "smooth", Port: pacedPort}
	var err error
	if p.Rate, err = netlab.ParseBytes(rate); err == nil && burst != "" {
		p.Burst, err = netlab.ParseBytes(burst)
	}
	if err != nil {
		return bad(err)
	}
	return b.lab.StartPacedNginx(ctx, o, p)
}

// objectAt makes an object at an origin.
func (b *bed) objectAt(at origin, size netlab.Bytes) (netlab.Object, error) {
	object, err := at.Object(size)
	if b.options.https && err == nil {
		secure, ok := at.(interface{ SecureURL(o netlab.Object) string })
		if !ok {
			return object, fmt.Errorf("--origin %s: it does not speak https", b.options.origin)
		}
		object.URL = secure.SecureURL(object)
	}
	return object, err
}

// limit measures the bundling limit.
func (b *bed) limit(ctx context.Context) (measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout)
	defer cancel()
	if err := b.fresh(ctx); err != nil {
		return measurement{}, err
	}
	stop := b.playEvents(ctx)
	began := time.Now()
	took, err := b.together(ctx)
	r := measurement{Seconds: took.Seconds(), began: began}
	var tapeErr error
	r.tapes, tapeErr = b.tapes()
	return r, errors.Join(err, stop(), tapeErr)
}

// together returns the time that unbounded transfers over all links at once take to sum to the object's size.
func (b *bed) together(ctx context.Context) (time.Duration, error) {
	if b.uploads != nil {
		return b.uploads.limit(ctx, b.lab.Links())
	}
	return b.lab.Limit(ctx, cmp.Or(b.unlimited, b.object.URL), b.object.Size, b.lab.Links()...)
}

// fresh makes the lab ready for a measurement and starts its tapes.
func (b *bed) fresh(ctx context.Context) error {
	if err := b.lab.Fresh(ctx); err != nil {
		return err
	}
	for _, link := range b.lab.Links() {
		if err := link.Record(); err != nil {
			return err
		}
	}
	return nil
}

// playEvents plays the scenario's events, if they were asked for; stop ends and undoes them.
func (b *bed) playEvents(ctx context.Context) (stop func() error) {
	if !b.options.events || len(b.lab.Scenario.Events) == 0 {
		return func() error { return nil }
	}
	playing, cancel := context.WithCancel(ctx)
	played := make(chan error, 1)
	go func() { played <- b.lab.PlayEvents(playing) }()
	return func() error {
		cancel()
		err := <-played
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, b.lab.ResetConnections(), b.lab.Restore())
	}
}

// measure lets a contender download the object and returns the observations; Error describes a failure.
func (b *bed) measure(ctx context.Context, c contender) measurement {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout)
	defer cancel()
	r, err := b.attempt(ctx, c)
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (b *bed) attempt(ctx context.Context, c contender) (r measurement, err error) {
	at, object := b.origin, b.object
	switch {
	case b.uploads != nil:
		at = b.uploads
	case c.mptcp:
		at, object = b.mptcp, b.viaMPTCP
	}
	pid := 0
	if c.proxy != nil {
		var stop func() error
		if pid, stop, err = b.startProxy(ctx, *c.proxy); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if c.proxy != nil && c.proxy.again {
		if _, err := b.download(ctx, c, b.firstURL(c, object)); err != nil {
			return r, fmt.Errorf("first object: %w", err)
		}
	}
	if err := b.fresh(ctx); err != nil {
		return r, err
	}
	r.origin, r.from = at, time.Now()
	cpu := processCPU(pid)
	stop := b.playEvents(ctx)
	d, err := b.download(ctx, c, object.URL)
	r.Seconds, r.began, r.download = d.Took.Seconds(), d.began, d.Download
	if pid != 0 {
		r.CPU = (processCPU(pid) - cpu).Seconds()
	} else if !c.ownTime {
		r.CPU = d.cpu.Seconds()
	}
	tapes, tapeErr := b.tapes()
	if tapeErr == nil {
		tapeErr = b.drain(ctx, &r)
	}
	r.tapes, r.until = tapes, time.Now()
	if err = errors.Join(err, tapeErr, stop()); err != nil {
		return r, err
	}
	r.examine(object.Size)
	if b.options.events {
		for i, link := range b.lab.Links() {
			r.returned(link.Name, tapes[i], b.lab.Scenario.Events)
		}
	}
	if r.Joules, err = joulesOf(tapes, d.Took); err != nil {
		return r, err
	}
	if c.observed && !d.Is(object) {
		return r, fmt.Errorf("wrong bytes: %d of %d, sha256 %s, want %s", d.Bytes, object.Size, d.SHA256, object.SHA256)
	}
	if !c.observed {
		if err := checkSum(b.out(), object); err != nil {
			return r, err
		}
	}
	for i, link := range b.lab.Links() {
		if c.mptcp && tapes[i].Total() == 0 {
			return r, fmt.Errorf("it used plain TCP or one path: %s carried nothing", link.Name)
		}
	}
	return r, nil
}

// maxWarm is the size of the object that warms up lanes, if the measured object is larger.
const maxWarm netlab.Bytes = 4_000_000

// firstURL returns the URL of the object that is downloaded before the measured one.
func (b *bed) firstURL(c contender, measured netlab.Object) string {
	if b.warm.Size > 0 && c.proxy.lanes {
		return b.warm.URL
	}
	return measured.URL + "?first"
}

// drain waits until no packet of the download is left on the links, and notes how much they delivered altogether.
func (b *bed) drain(ctx context.Context, r *measurement) error {
	wait, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	_ = b.lab.Settle(wait) // traffic that lasts longer does not belong to the download
	tapes, err := b.tapes()
	for _, t := range tapes {
		r.Delivered += t.Bytes
	}
	return err
}

// countRequests adds the origins' view of each measurement. An origin logs a request once its answer has ended, which
// may be long after the download on a link that went dark, so this step comes last.
func (b *bed) countRequests(contenders []*contenderResult) error {
	logs := map[origin][]netlab.Request{}
	all := []origin{b.origin}
	if b.mptcp != nil {
		all = append(all, b.mptcp)
	}
	if b.uploads != nil {
		all = append(all, b.uploads)
	}
	for _, at := range all {
		requests, err := at.Requests()
		if err != nil {
			return err
		}
		logs[at] = requests
	}
	links := b.lab.LinksByClient()
	for _, c := range contenders {
		for i := range c.Runs {
			c.Runs[i].count(logs[c.Runs[i].origin], links)
		}
	}
	return nil
}

func (b *bed) tapes() ([]netlab.Tape, error) {
	var all []netlab.Tape
	for _, link := range b.lab.Links() {
		t, err := link.Tape()
		if b.uploads != nil {
			t, err = link.TapeUp()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (b *bed) out() string { return filepath.Join(b.lab.Dir, "out") }

// downloaded holds the observations of a contender's command.
type downloaded struct {
	netlab.Download

	began time.Time
	cpu   time.Duration // processor time of the command
}

// download runs a contender's command. If the command reports its own time, that counts; otherwise its time from start
// to end counts.
func (b *bed) download(ctx context.Context, c contender, url string) (d downloaded, err error) {
	replace := strings.NewReplacer("{url}", url, "{out}", b.out(), "{ca}", b.ca, "{binary}", b.options.binary,
		"{links}", strings.Join(b.lab.LinkNames(), ","), "{file}",
		filepath.Join(b.lab.Dir, "objects", b.object.Size.String()))
	argv := make([]string, len(c.argv))
	for i, arg := range c.argv {
		argv[i] = replace.Replace(arg)
	}
	if err := b.lab.Forget(); err != nil {
		return d, err
	}
	cmd := b.lab.Client(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	// programs find no configuration to read; Go programs trust the lab's certificate
	cmd.Env = append(os.Environ(), "HOME="+b.lab.Dir, "XDG_CONFIG_HOME="+b.lab.Dir, "SSL_CERT_FILE="+b.ca)
	seen := newObserver()
	switch {
	case b.uploads != nil:
		b.uploads.expect(seen)
	case c.observed:
		cmd.Stdout = seen
	}
	d.began = seen.began
	err = cmd.Run()
	if b.uploads != nil {
		b.uploads.expect(nil)
	}
	d.Download = seen.done()
	if cmd.ProcessState != nil {
		d.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	text := strings.TrimSpace(said.String())
	if err != nil {
		return d, fmt.Errorf("%w: %s", err, text)
	}
	if c.ownTime {
		last := text[strings.LastIndexByte(text, '\n')+1:]
		seconds, err := strconv.ParseFloat(last, 64)
		if err != nil {
			return d, fmt.Errorf("curl said %q instead of its time", last)
		}
		own := time.Duration(seconds * float64(time.Second))
		d.shift(d.Took - own) // the rest is the time to start the program
		d.Took = own
	}
	return d, nil
}

// shift moves the beginning of the download.
func (d *downloaded) shift(by time.Duration) {
	d.began = d.began.Add(by)
	for i := range d.Reads {
		d.Reads[i].At -= by
	}
}

// startProxy starts a proxy; pid is its process ID.
func (b *bed) startProxy(ctx context.Context, p proxy) (pid int, stop func() error, err error) {
	if p.relay {
		return b.startRelay(ctx, p.splice)
	}
	o := netlab.TributaryOptions{Binary: b.options.binary}
	if err := withScheduler(&o, p.scheduler); err != nil {
		return 0, nil, err
	}
	if p.config != "" {
		path := filepath.Join(b.lab.Dir, "contender.toml")
		if err := os.WriteFile(path, []byte(p.config), 0o600); err != nil {
			return 0, nil, err
		}
		o.Args = []string{"--config", path}
	}
	if p.lanes {
		o.Args = append(o.Args, "--config", b.lanes.config, "--log-level", "debug")
	}
	t, err := b.lab.StartTributary(ctx, o)
	if err != nil {
		return 0, nil, err
	}
	if p.lanes {
		if err := b.lanesMade(ctx, t); err != nil {
			return 0, nil, errors.Join(err, t.Stop())
		}
	}
	return t.PID(), t.Stop, nil
}

// startRelay starts this program's relay in the client namespace.
func (b *bed) startRelay(ctx context.Context, splice bool) (pid int, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	cmd := b.lab.Client(ctx, self, "relay", "--listen", netlab.ProxyAddr, "--splice="+strconv.FormatBool(splice))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	stop = func() error {
		_ = cmd.Cancel()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) { // it is killed
			return err
		}
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := b.lab.WaitForClient(wait, netlab.ProxyAddr); err != nil {
		return 0, nil, errors.Join(err, stop())
	}
	return cmd.Process.Pid, stop, nil
}
