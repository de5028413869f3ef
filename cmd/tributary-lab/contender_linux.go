package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/lab"
)

// contender is a way to download an object over the lab's links.
type contender struct {
	name  string
	mptcp bool // needs the origin that accepts MPTCP
	// argv is the command; {url}, {out}, {ca}, {binary} and {links} are replaced
	argv []string
	// own: argv runs the measured tributary
	own bool
	// proxy, if not "", is the scheduler of a tributary that argv downloads through
	proxy string
	// ownTime: the command prints the seconds that its download took
	ownTime bool
}

const (
	mptcpPort    = 8081
	mptcpTLSPort = 8444
)

// curl downloads and prints its own time.
func curl(args ...string) []string {
	return append([]string{"curl", "-sS", "--fail", "-w", "%{time_total}", "--cacert", "{ca}", "-o", "{out}"}, args...)
}

func parseContenders(o benchOptions) ([]contender, error) {
	var all []contender
	for _, text := range o.contenders {
		c, err := parseContender(text)
		if err != nil {
			return nil, err
		}
		if c.proxy != "" || c.own {
			if _, err := os.Stat(o.binary); err != nil {
				return nil, fmt.Errorf("contender %s: %w: make build, or name it with --binary", text, err)
			}
		} else if _, err := exec.LookPath(c.argv[0]); err != nil {
			return nil, fmt.Errorf("contender %s: %w: install its Debian package", text, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func parseContender(text string) (contender, error) {
	if name, cmd, ok := strings.Cut(text, "="); ok {
		if name == "" || strings.TrimSpace(cmd) == "" {
			return contender{}, fmt.Errorf("contender %q: want NAME=CMD", text)
		}
		return contender{name: name, argv: []string{"sh", "-c", cmd}}, nil
	}
	kind, arg, _ := strings.Cut(text, ":")
	switch {
	case kind == "tributary" && arg != "":
		return contender{name: text, proxy: arg, argv: curl("-x", "http://"+lab.ProxyAddr, "{url}"), ownTime: true}, nil
	case text == "get":
		return contender{name: text, own: true, argv: []string{
			"{binary}", "get", "{url}", "-o", "{out}", "--cacert", "{ca}", "--link", "{links}",
		}}, nil
	case kind == "single" && arg != "":
		return contender{name: text, argv: curl("--interface", arg, "{url}"), ownTime: true}, nil
	case text == "aria2-2" || text == "aria2-8":
		n := strings.TrimPrefix(text, "aria2-")
		return contender{name: text, argv: []string{
			"aria2c", "--no-conf", "--quiet", "--disable-ipv6=true", "--async-dns=false", "--file-allocation=none",
			"--allow-overwrite=true", "--multiple-interface={links}", "--ca-certificate={ca}", "--split=" + n,
			"--max-connection-per-server=" + n, "--min-split-size=1M", "--dir=/", "--out={out}", "{url}",
		}}, nil
	case text == "mptcp":
		return contender{
			name: text, mptcp: true, argv: append([]string{"mptcpize", "run"}, curl("{url}")...), ownTime: true,
		}, nil
	}
	return contender{}, fmt.Errorf(
		"contender %q: want tributary:SCHEDULER, get, single:LINK, aria2-2, aria2-8, mptcp or NAME=CMD", text)
}

// bed is a lab with what the contenders need.
type bed struct {
	lab      *lab.Lab
	object   lab.Object
	viaMPTCP lab.Object
	ca       string // path of the certificate that https clients trust
	options  benchOptions
}

func newBed(ctx context.Context, l *lab.Lab, size lab.Bytes, o benchOptions) (*bed, error) {
	b := &bed{lab: l, options: o}
	cert, err := l.Certificate()
	if err != nil {
		return nil, err
	}
	b.ca = cert.CA
	object := func(o lab.NginxOptions) (lab.Object, error) {
		n, err := l.StartNginx(ctx, o)
		if err != nil {
			return lab.Object{}, err
		}
		object, err := n.Object(size)
		if b.options.https {
			object.URL = n.SecureURL(object)
		}
		return object, err
	}
	if b.object, err = object(lab.NginxOptions{NoHTTP2: o.http1}); err != nil {
		return nil, err
	}
	if _, err := l.StartDNS(); err != nil {
		return nil, err
	}
	if l.Scenario.MPTCP {
		b.viaMPTCP, err = object(lab.NginxOptions{Port: mptcpPort, TLSPort: mptcpTLSPort, NoHTTP2: o.http1, MPTCP: true})
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bed) limit(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout)
	defer cancel()
	if err := b.lab.Fresh(ctx); err != nil {
		return 0, err
	}
	return b.lab.Limit(ctx, b.object.URL, b.object.Size, b.lab.Links()...)
}

// measure lets a contender download the object and returns how long it took.
func (b *bed) measure(ctx context.Context, c contender) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.options.timeout)
	defer cancel()
	if c.proxy != "" {
		t, err := b.lab.StartTributary(ctx, lab.TributaryOptions{Binary: b.options.binary, Scheduler: c.proxy})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, t.Stop()) }()
	}
	if err := b.lab.Fresh(ctx); err != nil {
		return 0, err
	}
	object := b.object
	if c.mptcp {
		object = b.viaMPTCP
	}
	out := filepath.Join(b.lab.Dir, "out")
	replace := strings.NewReplacer(
		"{url}", object.URL, "{out}", out, "{ca}", b.ca, "{binary}", b.options.binary,
		"{links}", strings.Join(b.lab.LinkNames(), ","))
	argv := make([]string, len(c.argv))
	for i, arg := range c.argv {
		argv[i] = replace.Replace(arg)
	}
	var printed, said bytes.Buffer
	cmd := b.lab.Client(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &printed, &said
	// what reads a configuration finds none, Go programs trust the lab
	cmd.Env = append(os.Environ(), "HOME="+b.lab.Dir, "XDG_CONFIG_HOME="+b.lab.Dir, "SSL_CERT_FILE="+b.ca)

	before, err := b.carried()
	if err != nil {
		return 0, err
	}
	playing, stopEvents := context.WithCancel(ctx)
	defer stopEvents()
	played := make(chan error, 1)
	began := time.Now()
	if b.options.events {
		go func() { played <- b.lab.PlayEvents(playing) }()
	} else {
		played <- nil
	}
	err = cmd.Run()
	took = time.Since(began)
	stopEvents()
	if e := <-played; !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return took, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if c.ownTime {
		seconds, err := strconv.ParseFloat(strings.TrimSpace(printed.String()), 64)
		if err != nil {
			return took, fmt.Errorf("curl printed %q instead of its time", printed.String())
		}
		took = time.Duration(seconds * float64(time.Second))
	}
	if err := checkSum(out, object); err != nil || !c.mptcp {
		return took, err
	}
	after, err := b.carried()
	for i, link := range b.lab.Links() {
		if err == nil && after[i] == before[i] {
			err = fmt.Errorf("it used plain TCP or one path: %s carried nothing", link.Name)
		}
	}
	return took, err
}

// carried returns how many bytes have gone down each link.
func (b *bed) carried() ([]int64, error) {
	var all []int64
	for _, link := range b.lab.Links() {
		down, _, err := link.Counters()
		if err != nil {
			return nil, err
		}
		all = append(all, down.Bytes)
	}
	return all, nil
}
