package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/get"
	"github.com/tributary-http/tributary/internal/trace"
	"github.com/tributary-http/tributary/internal/transport"
)

func (a *app) getCommand() *cobra.Command {
	var flags getFlags
	c := &cobra.Command{
		Use:   "get URL...",
		Short: "Download files over every link, https too",
		Long: `Download each URL to a file, over every link at once. It needs no proxy that runs, and does not use http_proxy: it
connects to the server itself. https is verified on every link; this is how https downloads use all of them.

The file has the name that the URL ends in, or the one of -o, and is put in its place when it is complete. A file
that exists is left alone, unless --force is given. Until then the download is FILE.part, with FILE.part.json beside it.
When it breaks off, both stay: --resume continues from there if the object is still the same.
SIGINT (Ctrl-C) and SIGTERM end it so, too.

Several URLs are fetched in turn; one that fails does not keep the others from being fetched.

Redirects are followed, 20 at most, from https to http only with --allow-downgrade. The fields of --header, and a
password in the URL, go to the scheme, host and port of the URL only.

` + getExitCodes,
		Example: `  tributary get https://example.com/big.iso
  tributary get -o disk.img --checksum sha256:HEX https://example.com/big.iso
  tributary get --resume https://example.com/big.iso
  tributary get --link wlan0 --link wwan0 https://example.com/big.iso
  tributary get -H "Authorization: Bearer TOKEN" https://example.com/private.zip
  tributary get --trace links.json https://example.com/big.iso
  tributary get -o - https://example.com/all.tar.gz | tar xz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, urls []string) error {
			run, err := flags.run(cmd, a, urls)
			if err != nil {
				return usageError{err}
			}
			if err := noUpstream(run.cfg, a.getenv, "get"); err != nil && !run.quiet {
				fmt.Fprintf(a.stderr, "warning: %v\n", err)
			}
			return run.start(cmd.Context())
		},
	}
	flags.register(c)
	return c
}

// getFlags are the flags of get.
type getFlags struct {
	output, dir, agent, checksum, cacert, goal, trace        string
	logLevel                                                 string
	header                                                   []string
	from                                                     linkFlags
	within                                                   time.Duration
	bitrate                                                  string
	fromURL, fromServer, resume, force, downgrade, quiet, js bool
	background                                               bool
}

func (f *getFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.StringVarP(&f.output, "output", "o", "", "write to `FILE`; - is standard output")
	s.BoolVarP(&f.fromURL, "remote-name", "O", false, "name the file as the URL ends: the default, as with curl -O")
	s.BoolVarP(&f.fromServer, "remote-header-name", "J", false, "name the file as the server says (Content-Disposition)")
	s.StringVarP(&f.dir, "directory", "d", "", "put the files into the folder `DIR`")
	s.BoolVarP(&f.resume, "resume", "c", false, "resume FILE.part if it exists")
	s.BoolVar(&f.force, "force", false, "replace FILE, and a FILE.part that is not resumed")
	s.StringVar(&f.checksum, "checksum", "", "the file must have this `SUM`, sha256:HEX or sha512:HEX")
	s.StringArrayVarP(&f.header, "header", "H", nil, "send this `FIELD`, \"Name: value\"; repeatable; \"Name:\" leaves one out")
	s.StringVarP(&f.agent, "user-agent", "A", "tributary/VERSION", "send this `AGENT` as User-Agent, \"\" for none")
	s.BoolVar(&f.downgrade, "allow-downgrade", false, "follow redirects from https to http")
	s.StringVar(&f.cacert, "cacert", "", "trust the certificates in `FILE` (PEM) instead of the system's")
	f.from.register(c)
	s.BoolVar(&f.background, "background", false, "give way to other traffic: what is downloaded hardly queues in front of a link")
	s.StringVar(&f.goal, "goal", config.GoalFastest, goalHelp)
	s.DurationVar(&f.within, "within", 0, "keep costly links for what the others cannot bring within so `LONG`")
	s.StringVar(&f.bitrate, "bitrate", "", "keep costly links for what a player of so many `BITS` needs, 4Mbit/s for example; see -o -")
	s.StringVar(&f.logLevel, "log-level", "warn", "`LEVEL` of messages: debug, info, warn, error; given, there are no bars")
	s.StringVar(&f.trace, "trace", "", "write to a new `FILE` what each link carries every 100 ms, in both directions")
	s.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	s.BoolVar(&f.js, "json", false, "print a line of JSON for each URL on standard output")
}

// run returns the run that the flags describe.
func (f *getFlags) run(c *cobra.Command, a *app, urls []string) (*getRun, error) {
	given := c.Flags().Changed
	switch {
	case f.output != "" && len(urls) > 1:
		return nil, errors.New("-o names one file, but there are several URLs: leave it out, or name a folder with -d")
	case f.checksum != "" && len(urls) > 1:
		return nil, errors.New("--checksum is of one file, but there are several URLs: fetch them one by one")
	case f.output != "" && (f.fromServer || f.fromURL):
		return nil, errors.New("-o names the file: leave -O and -J out")
	case f.output == "-" && f.js:
		return nil, errors.New("-o - and --json both write to standard output: choose one")
	case f.output == "-" && f.resume:
		return nil, errors.New("standard output cannot be resumed: leave --resume out, or write to a file")
	case f.trace == "-":
		return nil, errors.New("--trace writes to a file: name one")
	}
	cfg, err := config.Load(f.from.file, a.getenv)
	if err != nil {
		return nil, err
	}
	f.from.lay(c, cfg)
	deadline := transport.Deadline{Within: f.within, Startup: transport.PlayerStartup}
	if f.bitrate != "" {
		var rate config.Rate
		if err := rate.UnmarshalText([]byte(f.bitrate)); err != nil || rate <= 0 {
			return nil, fmt.Errorf("--bitrate %q: write a rate like 4Mbit/s", f.bitrate)
		}
		deadline.Bitrate = float64(rate)
	}
	if f.within > 0 && f.bitrate != "" {
		return nil, errors.New("--within and --bitrate are two kinds of deadline: choose one")
	}
	if f.within < 0 {
		return nil, fmt.Errorf("--within %v: write a time like 60s", f.within)
	}
	if given("goal") {
		cfg.Goal = f.goal
		cfg.Override("goal", "goal")
	}
	cfg.LogLevel = f.logLevel // that of the file is the proxy's
	cfg.Override("log_level", "log-level")
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &getRun{
		deadline: deadline,
		app:      a, cfg: cfg.Config, urls: urls, json: f.js, quiet: f.quiet, bars: a.terminal && !f.quiet && !given("log-level"),
		console: &console{plain: a.stderr, raw: a.rawStderr}, trace: f.trace,
		options: get.Options{
			Output: f.output, Dir: f.dir, ServerName: f.fromServer, Force: f.force, Resume: f.resume,
			AllowDowngrade: f.downgrade, Stdout: a.rawStdout,
		},
	}
	if !given("user-agent") {
		f.agent = "tributary/" + a.version
	}
	if f.background {
		f.header = append(f.header, "Priority: u=7")
	}
	if r.options.Header, err = get.Fields(f.header, f.agent); err != nil {
		return nil, err
	}
	if f.checksum != "" {
		if r.options.Checksum, err = get.ParseChecksum(f.checksum); err != nil {
			return nil, fmt.Errorf("--checksum: %w", err)
		}
	}
	if f.cacert != "" {
		if r.roots, err = readRoots(f.cacert); err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
	}
	return r, nil
}

func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return roots, nil
}

// signalEcho is longer than a download takes to stop, unless the disk hangs.
const signalEcho = time.Second

// getRun is one run of get.
type getRun struct {
	*app
	cfg      config.Config
	roots    *x509.CertPool
	urls     []string
	options  get.Options
	console  *console
	bars     bool // draw them
	quiet    bool
	json     bool
	trace    string             // file for what the links carried, "" = none
	deadline transport.Deadline // zero Within and Bitrate = none
}

// start downloads everything, until a signal comes.
func (r *getRun) start(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(r.console, &slog.HandlerOptions{Level: r.cfg.Level()}))
	var by os.Signal
	stopping := func(s os.Signal) { by = s }
	err := untilSignaled(ctx, signalEcho, stopping, func(ctx context.Context) error {
		return r.fetch(ctx, r.cfg, r.roots, log, r.all)
	})
	if err != nil && by != nil {
		return signaledError{err, by}
	}
	return err
}

// counter is a Transport that tells what its connections carry.
type counter interface {
	Count(f func(link string, read, written int))
}

// all downloads the URLs, and writes the trace if there is to be one, of a download that fails as well.
func (r *getRun) all(ctx context.Context, t http.RoundTripper) (err error) {
	c, ok := t.(counter)
	if r.trace == "" || !ok {
		return r.each(ctx, t)
	}
	f, err := os.OpenFile(r.trace, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return &get.Error{
			Kind: get.File, Err: fmt.Errorf("--trace: %w", err), Next: "name a file that does not exist, in a folder that you may write to",
		}
	}
	recorder := trace.NewRecorder(time.Now())
	c.Count(func(link string, read, written int) { recorder.Add(time.Now(), link, int64(read), int64(written)) })
	err = r.each(ctx, t)
	if werr := errors.Join(recorder.Trace().Write(f), f.Close()); werr != nil {
		werr = &get.Error{Kind: get.File, Err: fmt.Errorf("--trace: %w", werr)}
		if err != nil {
			fmt.Fprintln(r.console, complaint("", werr))
			return err
		}
		return werr
	}
	return err
}

// each downloads the URLs in turn. Its error is that of the only one, or stands for all.
func (r *getRun) each(ctx context.Context, t http.RoundTripper) error {
	if r.deadline.Within > 0 || r.deadline.Bitrate > 0 {
		ctx = transport.WithDeadline(ctx, r.deadline)
	}
	g := &get.Getter{Transport: t, Options: r.options}
	if !r.quiet {
		g.Note = func(text string) { fmt.Fprintln(r.console, "tributary:", text) }
	}
	var first error
	failed := 0
	for _, url := range r.urls {
		res, err := r.one(ctx, g, url)
		if jerr := r.report(url, res, err); jerr != nil {
			return jerr
		}
		if err == nil {
			continue
		}
		if len(r.urls) == 1 {
			return err
		}
		fmt.Fprintln(r.console, complaint(redacted(url)+": ", err))
		failed++
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first == nil {
		return nil
	}
	return severalError{first, failed, len(r.urls)}
}

// one downloads a URL and shows how far it is.
func (r *getRun) one(ctx context.Context, g *get.Getter, url string) (get.Result, error) {
	meter := get.NewMeter()
	if !r.bars {
		return g.Get(ctx, url, meter)
	}
	d := newDisplay(r.console, meter, g.Transport)
	defer d.close()
	return g.Get(ctx, url, meter)
}

// report prints the outcome of a URL.
func (r *getRun) report(url string, res get.Result, err error) error {
	if r.json {
		return writeJSON(r.stdout, url, res, err)
	}
	if err == nil && !r.quiet {
		fmt.Fprintln(r.console, summary(res))
	}
	return nil
}

// signaledError is the error of a command that a signal ended.
type signaledError struct {
	error
	by os.Signal
}

func (e signaledError) Unwrap() error { return e.error }

// severalError stands for those of several downloads, which were printed when they happened.
type severalError struct {
	first       error
	failed, all int
}

func (e severalError) Error() string {
	return fmt.Sprintf("%d of %d downloads failed", e.failed, e.all)
}

func (e severalError) Unwrap() error { return e.first }
