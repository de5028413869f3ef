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
	"github.com/tributary-http/tributary/internal/partial"
	"github.com/tributary-http/tributary/internal/statefile"
	"github.com/tributary-http/tributary/internal/trace"
	"github.com/tributary-http/tributary/internal/transport"
)

func (a *app) getCommand() *cobra.Command {
	var flags getFlags
	c := &cobra.Command{
		Use:   "get URL...",
		Short: "Download files over all links, including https",
		Long: `Download each URL to a file over all links at once. get connects to the server itself: it does not need a running proxy
and ignores http_proxy. https downloads use all links too, and the server's certificate is verified on each of them.

The file is named after the last part of the URL, or as -o says. An existing file is kept unless you give --force. An
incomplete download is stored as FILE.part and renamed when it is complete. If it is interrupted, including by SIGINT
(Ctrl-C) or SIGTERM, --resume continues it, provided that the file on the server has not changed.

Several URLs are downloaded one after another. If one fails, get continues with the next.

get follows up to 20 redirects, but from https to http only with --allow-downgrade. Header fields from --header and a
password in the URL are sent only to the scheme, host and port of the original URL.

` + getExitCodes,
		Example: `  tributary get https://example.com/big.iso
  tributary get -o disk.img --checksum sha256:HEX https://example.com/big.iso
  tributary get --resume https://example.com/big.iso
  tributary get --link wlan0 --link wwan0 https://example.com/big.iso
  tributary get --background --within 2h https://example.com/big.iso
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
	s.StringVarP(&f.output, "output", "o", "", "write to `FILE`; - means standard output")
	s.BoolVarP(&f.fromURL, "remote-name", "O", false, "name the file after the last part of the URL (the default; for compatibility with curl)")
	s.BoolVarP(&f.fromServer, "remote-header-name", "J", false, "name the file as the server suggests (Content-Disposition)")
	s.StringVarP(&f.dir, "directory", "d", "", "save files in the folder `DIR`")
	s.BoolVarP(&f.resume, "resume", "c", false, "continue FILE.part if it exists")
	s.BoolVar(&f.force, "force", false, "overwrite an existing FILE, and a FILE.part that is not resumed")
	s.StringVar(&f.checksum, "checksum", "", "verify the file against `SUM`: sha256:HEX or sha512:HEX")
	s.StringArrayVarP(&f.header, "header", "H", nil, "send the header `FIELD` \"Name: value\"; \"Name:\" removes a default one; repeatable")
	s.StringVarP(&f.agent, "user-agent", "A", "tributary/VERSION", "send `AGENT` as User-Agent; \"\" sends none")
	s.BoolVar(&f.downgrade, "allow-downgrade", false, "follow redirects from https to http")
	s.StringVar(&f.cacert, "cacert", "", "trust the CA certificates in `FILE` (PEM) instead of the system's")
	f.from.register(c)
	s.BoolVar(&f.background, "background", false, "give way to other traffic on the links")
	s.StringVar(&f.goal, "goal", config.GoalFastest, goalHelp)
	s.DurationVar(&f.within, "within", 0, "finish within `DURATION`: use costly links only if the others would take longer")
	s.StringVar(&f.bitrate, "bitrate", "", "keep up with a player that needs `RATE`, for example 4Mbit/s: use costly links only if the others fall short")
	s.StringVar(&f.logLevel, "log-level", "warn", "minimum `LEVEL` of log messages: debug, info, warn, error; replaces the progress bars")
	s.StringVar(&f.trace, "trace", "", "record to a new `FILE` what each link carries in each direction, every 100 ms")
	s.BoolVarP(&f.quiet, "quiet", "q", false, "print only errors")
	s.BoolVar(&f.js, "json", false, "print one line of JSON per URL to standard output")
}

// run returns the run that the flags describe.
func (f *getFlags) run(c *cobra.Command, a *app, urls []string) (*getRun, error) {
	given := c.Flags().Changed
	switch {
	case f.output != "" && len(urls) > 1:
		return nil, errors.New("-o names one file, but there are several URLs: omit -o, or name a folder with -d")
	case f.checksum != "" && len(urls) > 1:
		return nil, errors.New("--checksum applies to one file, but there are several URLs: download them one by one")
	case f.output != "" && (f.fromServer || f.fromURL):
		return nil, errors.New("-o already names the file: omit -O and -J")
	case f.output == "-" && f.js:
		return nil, errors.New("-o - and --json both write to standard output: choose one")
	case f.output == "-" && f.resume:
		return nil, errors.New("standard output cannot be resumed: omit --resume, or write to a file")
	case f.trace == "-":
		return nil, errors.New("--trace cannot write to standard output: name a file")
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
			return nil, fmt.Errorf("--bitrate %q: want a rate like 4Mbit/s", f.bitrate)
		}
		deadline.Bitrate = float64(rate)
	}
	if f.within > 0 && f.bitrate != "" {
		return nil, errors.New("--within and --bitrate exclude each other: choose one")
	}
	if f.within < 0 {
		return nil, fmt.Errorf("--within %v: want a duration like 60s", f.within)
	}
	if given("goal") {
		cfg.Goal = f.goal
		cfg.Override("goal", "goal")
	}
	cfg.LogLevel = f.logLevel // the file's level is for the proxy
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
			AllowDowngrade: f.downgrade, Stdout: a.rawStdout, Partial: partial.Store(statefile.Path(a.getenv, "partial")),
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
		return nil, fmt.Errorf("%s contains no PEM certificate", file)
	}
	return roots, nil
}

// signalEcho is longer than the time that a download takes to stop, unless the disk hangs.
const signalEcho = time.Second

// getRun is one run of get.
type getRun struct {
	*app
	cfg      config.Config
	roots    *x509.CertPool
	urls     []string
	options  get.Options
	console  *console
	bars     bool // draw progress bars
	quiet    bool
	json     bool
	trace    string             // file for the trace of the links; "" = none
	deadline transport.Deadline // zero Within and Bitrate = none
}

// start downloads everything until a signal arrives.
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

// counter is a Transport that reports the traffic of its connections.
type counter interface {
	Count(f func(link string, read, written int))
}

// all downloads the URLs and writes the trace if one was requested, even if a download fails.
func (r *getRun) all(ctx context.Context, t http.RoundTripper) (err error) {
	c, ok := t.(counter)
	if r.trace == "" || !ok {
		return r.each(ctx, t)
	}
	f, err := os.OpenFile(r.trace, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return &get.Error{
			Kind: get.File, Err: fmt.Errorf("--trace: %w", err), Next: "name a new file in a folder that you can write to",
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

// each downloads the URLs in turn. It returns the error of a single URL as it is, and a severalError for several.
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

// one downloads a URL and shows its progress.
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

// signaledError is the error of a command that was ended by a signal.
type signaledError struct {
	error
	by os.Signal
}

func (e signaledError) Unwrap() error { return e.error }

// severalError summarizes the errors of several downloads, which were printed when they happened.
type severalError struct {
	first       error
	failed, all int
}

func (e severalError) Error() string {
	return fmt.Sprintf("%d of %d downloads failed", e.failed, e.all)
}

func (e severalError) Unwrap() error { return e.first }
