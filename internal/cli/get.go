package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/host/partial"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/trace"
	"github.com/tributary-http/tributary/internal/net/transport"
)

func (a *app) getCommand() *cobra.Command {
	var flags getFlags
	c := &cobra.Command{
		Use:   "get [flags] URL...",
		Short: "Download files over all links, including https",
		Long: `Download each URL to a file over all links at once. get connects to the server itself: it does not need a running proxy
and ignores http_proxy. https downloads use all links too, and the server's certificate is verified on each of them.

The file is named after the last part of the URL, or as -o says. An existing file is kept unless you give --force. An
incomplete download is stored as FILE.part and renamed when it is complete. If it is interrupted, including by SIGINT
(Ctrl-C) or SIGTERM, --resume continues it, provided that the file on the server has not changed; files that are
complete stay as they are.

Several URLs are downloaded one after another, or -j at a time. If one fails, get continues with the next,
and exits with the code of the first failure.

get follows up to 20 redirects, but from https to http only with --allow-downgrade. Header fields from --header and a
password in the URL are sent only to the scheme, host and port of the original URL.`,
		Example: `  tributary get https://example.com/big.iso
  tributary get -o disk.img --checksum sha256:HEX https://example.com/big.iso
  tributary get --resume https://example.com/big.iso
  tributary get --retry 5 -j 4 -d isos -i urls.txt
  tributary get --link wlan0 --link wwan0 https://example.com/big.iso
  tributary get --except wwan0 https://example.com/big.iso
  tributary get --background --within 2h https://example.com/big.iso
  tributary get -H "Authorization: Bearer TOKEN" https://example.com/private.zip
  tributary get --trace links.json https://example.com/big.iso
  tributary get -o - https://example.com/all.tar.gz | tar xz`,
		Args: func(_ *cobra.Command, urls []string) error {
			if len(urls) == 0 && flags.input == "" {
				return errors.New("name a URL, or a file of URLs with -i")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, urls []string) error {
			if flags.input != "" {
				more, err := readURLs(flags.input, a.stdin)
				if err != nil {
					return usageError{err}
				}
				urls = slices.Concat(urls, more)
			}
			run, err := flags.run(cmd, a, urls)
			if err != nil {
				return usageError{err}
			}
			if err := noUpstream(run.cfg, a.getenv, "get"); err != nil && !run.quiet {
				fmt.Fprintf(a.stderr, "warning: %v\n", err)
			}
			if err := a.knownLinks(cmd, "link", run.cfg); err != nil {
				return usageError{err}
			}
			if err := a.knownLinks(cmd, "except", run.cfg); err != nil && !run.quiet {
				fmt.Fprintf(a.stderr, "warning: %v\n", err)
			}
			return run.start(cmd.Context())
		},
	}
	flags.register(c)
	_ = c.RegisterFlagCompletionFunc("except", a.linkNames) // not for run, whose --except names hosts
	return c
}

// getFlags are the flags of get.
type getFlags struct {
	output, dir, agent, checksum, cacert, goal, trace        string
	logLevel                                                 string
	header, except                                           []string
	from                                                     linkFlags
	within                                                   time.Duration
	bitrate                                                  string
	fromURL, fromServer, resume, force, downgrade, quiet, js bool
	background                                               bool
	input, limit                                             string
	retry, parallel, maxLinks                                int
}

func (f *getFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.StringVarP(&f.output, "output", "o", "", "write to `FILE`, or below a folder; - means standard output")
	s.BoolVarP(&f.fromURL, "remote-name", "O", false,
		"name the file after the last part of the URL (the default; for compatibility with curl)")
	s.BoolVarP(&f.fromServer, "remote-header-name", "J", false,
		"name the file as the server suggests (Content-Disposition)")
	s.StringVarP(&f.dir, "directory", "d", "", "save files in the folder `DIR`, which is made if it does not exist")
	s.StringVarP(&f.input, "input-file", "i", "",
		"download the URLs in `FILE`, one on each line; - means standard input")
	s.IntVarP(&f.parallel, "jobs", "j", 1, "download `N` URLs at a time")
	s.IntVar(&f.retry, "retry", 0,
		"try up to `N` more times after an error that may pass, with growing waits or as Retry-After says")
	s.StringVar(&f.limit, "limit-rate", "",
		"receive at most `RATE` in all, for example 20Mbit/s, or 2M bytes per second as for curl")
	s.BoolVarP(&f.resume, "resume", "c", false, "continue FILE.part if it exists")
	s.BoolVar(&f.force, "force", false, "overwrite an existing FILE, and a FILE.part that is not resumed")
	s.StringVar(&f.checksum, "checksum", "", "verify the file against `SUM`: sha256:HEX or sha512:HEX")
	s.StringArrayVarP(&f.header, "header", "H", nil,
		"send the header `FIELD` \"Name: value\"; \"Name:\" removes a default one; repeatable")
	s.StringVarP(&f.agent, "user-agent", "A", "tributary/VERSION", "send `AGENT` as User-Agent; \"\" sends none")
	s.BoolVar(&f.downgrade, "allow-downgrade", false, "follow redirects from https to http")
	s.StringVar(&f.cacert, "cacert", "", "trust the CA certificates in `FILE` (PEM) instead of the system's")
	f.from.register(c)
	s.StringSliceVar(&f.except, "except", nil, "do not use the link `NAME`; repeatable")
	s.IntVar(&f.maxLinks, "max-links", 0,
		"use at most `N` links at a time for each download, metered ones last; another one joins if one of them fails; 0 = all")
	s.BoolVar(&f.background, "background", false, "give way to other traffic on the links")
	s.StringVar(&f.goal, "goal", schedule.Fastest, goalHelp)
	s.DurationVar(&f.within, "within", 0,
		"finish within `DURATION`: use costly links only if the others would take longer")
	s.StringVar(&f.bitrate, "bitrate", "",
		"keep up with a player that needs `RATE`, for example 4Mbit/s: use costly links only if the others fall short")
	s.StringVar(&f.logLevel, "log-level", "warn",
		"minimum `LEVEL` of log messages: debug, info, warn, error; replaces the progress bars")
	s.StringVar(&f.trace, "trace", "", "record to a new `FILE` what each link carries in each direction, every 100 ms")
	s.BoolVarP(&f.quiet, "quiet", "q", false, "print only errors")
	s.BoolVar(&f.js, "json", false, "print one line of JSON per URL to standard output")
	s.BoolVarP(&f.quiet, "silent", "s", false, "as --quiet, for compatibility with curl")
	for long, short := range map[string]string{"location": "L", "fail": "f", "show-error": "S", "progress-bar": "#"} {
		s.BoolP(long, short, false, "for compatibility with curl: get always does this")
		_ = s.MarkHidden(long)
	}
	_ = s.MarkHidden("silent")
}

// run returns the run that the flags describe.
func (f *getFlags) run(c *cobra.Command, a *app, urls []string) (*getRun, error) {
	given := c.Flags().Changed
	if info, err := os.Stat(f.output); f.output != "" && (strings.HasSuffix(f.output, "/") ||
		err == nil && info.IsDir()) {
		f.dir, f.output = filepath.Join(f.dir, f.output), ""
	}
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
	case f.retry < 0 || f.parallel < 1 || f.maxLinks < 0:
		return nil, errors.New("--retry and --max-links want 0 or more, and -j 1 or more")
	case f.trace == "-":
		return nil, errors.New("--trace cannot write to standard output: name a file")
	}
	if err := distinct(urls); err != nil && !f.fromServer {
		return nil, err
	}
	cfg, err := config.Load(f.from.file, a.getenv)
	if err != nil {
		return nil, err
	}
	f.from.lay(c, cfg)
	for _, name := range f.except {
		if given("link") && slices.Contains(f.from.links, name) {
			return nil, fmt.Errorf("--link %s and --except %s exclude each other: choose one", name, name)
		}
		cfg.Exclude(name)
	}
	deadline := policy.Deadline{Within: f.within, Startup: transport.PlayerStartup}
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
		links:    policy.Request{MaxLinks: f.maxLinks},
		app:      a,
		cfg:      cfg.Config,
		urls:     urls,
		json:     f.js,
		quiet:    f.quiet,
		bars:     a.terminal && !f.quiet && !given("log-level"),
		console:  &console{plain: a.stderr, raw: a.rawStderr},
		trace:    f.trace,
		retry:    f.retry,
		parallel: f.parallel,
		options: get.Options{
			Output:         f.output,
			Dir:            f.dir,
			ServerName:     f.fromServer,
			Force:          f.force,
			Resume:         f.resume,
			AllowDowngrade: f.downgrade,
			Dated:          true,
			Stdout:         a.rawStdout,
			Partial:        partial.Store(statefile.Path(a.getenv, "partial")),
		},
	}
	if deadline.Within > 0 || deadline.Bitrate > 0 {
		r.links.Deadline = &deadline
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
	if f.limit != "" {
		rate, err := limitRate(f.limit)
		if err != nil {
			return nil, err
		}
		r.options.Limit = get.NewLimit(rate)
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
	retry    int            // further attempts after temporary errors
	parallel int            // downloads at a time
	trace    string         // file for the trace of the links; "" = none
	links    policy.Request // which links may carry the downloads
}

// start downloads everything until a signal arrives.
func (r *getRun) start(ctx context.Context) error {
	log := newLog(r.console, r.terminal, r.cfg.Level())
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
			Kind: get.File, Err: fmt.Errorf("--trace: %w", err),
			Next: "name a new file in a folder that you can write to",
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
	ctx = transport.With(ctx, func(o *transport.Options) { o.Links = r.links })
	g := &get.Getter{Transport: t, Options: r.options}
	if !r.quiet {
		g.Note = func(text string) { fmt.Fprintln(r.console, "tributary:", text) }
	}
	if len(r.urls) == 1 {
		res, err := r.one(ctx, g, r.urls[0])
		return cmp.Or(r.report(r.urls[0], res, err), err)
	}
	var mu sync.Mutex // guards all below, and the order of the reports
	var broken error  // standard output cannot be written
	sum := severalError{all: len(r.urls)}
	next := func() (url string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || broken != nil || sum.started == len(r.urls) {
			return "", false
		}
		sum.started++
		return r.urls[sum.started-1], true
	}
	var run sync.WaitGroup
	for range min(r.parallel, len(r.urls)) {
		run.Go(func() {
			for url, ok := next(); ok; url, ok = next() {
				res, err := r.one(ctx, g, url)
				mu.Lock()
				broken = cmp.Or(broken, r.report(url, res, err))
				if err != nil {
					fmt.Fprintln(r.console, complaint(redacted(url)+": ", err))
					sum.failed++
					sum.first = cmp.Or(sum.first, err)
				}
				mu.Unlock()
			}
		})
	}
	run.Wait()
	switch {
	case broken != nil:
		return broken
	case sum.first != nil:
		return sum
	}
	return nil
}

// one downloads a URL, again after temporary errors, and shows its progress.
func (r *getRun) one(ctx context.Context, g *get.Getter, url string) (get.Result, error) {
	again := *g
	for try, wait := 0, time.Second; ; try, wait = try+1, min(2*wait, time.Minute) {
		meter := get.NewMeter()
		shown := r.show(meter, g.Transport)
		res, err := again.Get(ctx, url, meter)
		shown.close()
		e := (*get.Error)(nil)
		if try == r.retry || !errors.As(err, &e) || !e.Temporary || ctx.Err() != nil ||
			again.Output == "-" && res.Size > 0 {
			return res, err
		}
		pause := cmp.Or(e.After, wait)
		if !r.quiet {
			fmt.Fprintf(r.console, "tributary: %s: again in %v (%d of %d)\n",
				strings.ReplaceAll(err.Error(), "\n", `\n`), pause.Round(time.Second), try+1, r.retry)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return res, err
		}
		again.Resume = again.Output != "-"
	}
}

// show shows the progress of a download until it is closed: by bars, by a line now and then, or not at all.
func (r *getRun) show(meter *get.Meter, t http.RoundTripper) interface{ close() } {
	switch {
	case r.quiet:
		return nothing{}
	case r.bars && r.parallel == 1:
		return newDisplay(r.console, meter, t)
	}
	return newLines(r.console, meter, t)
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
	first                error
	failed, started, all int
}

func (e severalError) Error() string {
	text := fmt.Sprintf("%d of %d downloads failed", e.failed, e.all)
	if rest := e.all - e.started; rest > 0 {
		text += fmt.Sprintf(", %d not started", rest)
	}
	return text
}

func (e severalError) Unwrap() error { return e.first }
