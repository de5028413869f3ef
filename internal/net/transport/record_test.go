package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with returns how many lines contain a text.
func (l *lines) with(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), part)
}

// remembering is a Transport over "wifi" and "lte" with a history.
type remembering struct {
	*Transport
	t    *testing.T
	s    *origintest.Server
	file string
	said lines
	stop func()
}

func startRemembering(t *testing.T, s *origintest.Server, file string) *remembering {
	t.Helper()
	cfg := config.Default()
	cfg.Threshold = 64 << 10
	r := &remembering{t: t, s: s, file: file}
	dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Metric/100-1))
	}
	var err error
	r.Transport, err = New(Config{
		Settings: cfg, Log: slog.New(slog.NewTextHandler(&r.said, &slog.HandlerOptions{Level: slog.LevelDebug})), History: file,
		Source: discover.NewStatic(link.DialFunc(dial).Over(named("wifi", "lte")...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := r.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() { stop(); r.Close() })
	t.Cleanup(r.stop)
	return r
}

// get downloads the object.
func (r *remembering) get() {
	r.t.Helper()
	resp, err := r.RoundTrip(get(r.t, r.s.URL()))
	if err != nil {
		r.t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || n != r.s.Object().Size || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%d bytes, %v", n, err)
	}
}

// origin names the server as requests do.
func (r *remembering) origin() estimate.Origin {
	return estimate.Origin(strings.TrimSuffix(r.s.URL(), get(r.t, r.s.URL()).URL.Path))
}

// inFile returns the record in the file.
func (r *remembering) inFile() *estimate.Record {
	r.t.Helper()
	b, err := os.ReadFile(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	record, err := estimate.UnmarshalRecord(b)
	if err != nil {
		r.t.Fatal(err)
	}
	return record
}

func rateOf(r *estimate.Record, network string, o estimate.Origin) float64 {
	return r.Link(time.Now(), network, o).Rate
}

// pace is the rate that each link carries in these tests: a download shows it.
const pace = 2 << 20

func pacedServer(t *testing.T) *origintest.Server {
	return origintest.New(t, origintest.Object{Size: 6 << 20}, origintest.RateLimit(pace))
}

// TestHistory: the findings of one Transport are written when it stops, and another one starts with them.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := pacedServer(t)
	file := filepath.Join(t.TempDir(), "folder", "history")
	one := startRemembering(t, s, file)
	one.stop()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file without anything to remember: %v", err)
	}
	one = startRemembering(t, s, file)
	one.get()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("written within a minute: %v", err)
	}
	one.stop()
	record := one.inFile()
	for _, network := range []string{"wifi", "lte"} {
		for _, o := range []estimate.Origin{one.origin(), "https://other.example"} {
			if rateOf(record, network, o) == 0 {
				t.Errorf("nothing of %s over %s", o, network)
			}
		}
	}
	if is, err := os.Stat(file); err != nil || is.Mode() != 0o600 || is.Size() > estimate.MaxRecord {
		t.Errorf("%v, %v", is, err)
	}
	two := startRemembering(t, s, file)
	for _, l := range two.engine.Ranked() {
		if two.placer.Remembered(l) == 0 {
			t.Errorf("tunnels are placed over %s as if nothing were known of it", l.Name)
		}
	}
	e := two.engine.Findings()
	if len(e) > 0 {
		t.Errorf("%d findings before the first request", len(e))
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	two.stop()
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("written without anything new: %v", err)
	}
}

// TestHistoryOfTwo: two processes that run at the same time both add to the file, and each learns what the other added.
func TestHistoryOfTwo(t *testing.T) {
	t.Parallel()
	s, other := pacedServer(t), pacedServer(t)
	file := filepath.Join(t.TempDir(), "history")
	one, two := startRemembering(t, s, file), startRemembering(t, other, file)
	one.get()
	two.get()
	one.stop()
	two.stop()
	record := two.inFile()
	if rateOf(record, "wifi", one.origin()) == 0 || rateOf(record, "wifi", two.origin()) == 0 {
		t.Error("the findings of one of the two are lost")
	}
	// The salt is the file's, whoever had another one before.
	three := startRemembering(t, s, file)
	three.get()
	three.stop()
	if record = three.inFile(); rateOf(record, "wifi", two.origin()) == 0 {
		t.Error("the third has lost what the others had found")
	}
}

// TestHistoryIsForgotten: data that the user deletes does not come back.
func TestHistoryIsForgotten(t *testing.T) {
	t.Parallel()
	s := pacedServer(t)
	one := startRemembering(t, s, filepath.Join(t.TempDir(), "history"))
	record := emptyRecord()
	record.SetLink(time.Now(), "wifi", "https://old.example", estimate.Entry{RTT: time.Millisecond}, pace)
	one.engine.SetRecord(record) // as it was read from the file that is gone now
	one.get()
	one.stop()
	if rateOf(one.inFile(), "wifi", one.origin()) == 0 {
		t.Error("nothing was written")
	}
	if one.inFile().Link(time.Now(), "wifi", "https://old.example").RTT > 0 {
		t.Error("it is back")
	}
}

// TestHistoryDamaged: a file that is not a history is replaced, with one line in the log.
func TestHistoryDamaged(t *testing.T) {
	for name, text := range map[string][]byte{
		"empty": nil, "text": []byte("my notes\n"), "too long": bytes.Repeat([]byte{0}, 1<<20), "cut": emptyRecord().Marshal(time.Now())[:20],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "history")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			one := startRemembering(t, pacedServer(t), file)
			one.get()
			one.stop()
			if rateOf(one.inFile(), "lte", one.origin()) == 0 {
				t.Error("it is not replaced")
			}
			if n := one.said.with("starting a new one"); n != 1 {
				t.Errorf("said %d times", n)
			}
		})
	}
}

// tree returns the paths of all files and folders in a folder.
func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHistoryUnusable: if the file cannot be read or written, or belongs to another user, downloads work and the file stays as
// it is. This is logged once, below the level of warnings.
func TestHistoryUnusable(t *testing.T) {
	text := []byte("not mine")
	for name, prepare := range map[string]func(dir string) error{
		"no folder": func(dir string) error { return os.WriteFile(filepath.Join(dir, "state"), text, 0o600) },
		"others may write": func(dir string) error {
			file := filepath.Join(dir, "state", "history")
			return errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600), os.Chmod(file, 0o666))
		},
		"another user's": func(dir string) error {
			file := filepath.Join(dir, "state", "history")
			err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600))
			if os.Geteuid() == 0 { // only root can give a file away
				err = errors.Join(err, os.Chown(file, 12345, -1))
			} else {
				err = errors.Join(err, os.Chmod(file, 0o666))
			}
			return err
		},
		"a link": func(dir string) error {
			file := filepath.Join(dir, "state", "history")
			return errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(dir+"/other", text, 0o600), os.Symlink(dir+"/other", file))
		},
		"another user's folder": func(dir string) error {
			if os.Geteuid() == 0 {
				return os.Chown(dir, 12345, -1)
			}
			return os.Chmod(dir, 0o777)
		},
		"the lock is a folder": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "state", "history.lock"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			before := tree(t, dir)
			one := startRemembering(t, pacedServer(t), filepath.Join(dir, "state", "history"))
			one.get()
			one.stop()
			if after := tree(t, dir); !slices.Equal(before, after) {
				t.Errorf("it has made something: before %q, then %q", before, after)
			}
			if n := one.said.with("cannot store the rates of links"); n != 1 || one.said.with("level=WARN") != 0 {
				t.Errorf("said %d times: %s", n, one.said.b.String())
			}
			for _, file := range []string{"state", "state/history", "other"} {
				if b, err := os.ReadFile(filepath.Join(dir, file)); err == nil && !bytes.Equal(b, text) {
					t.Errorf("%s was written", file)
				}
			}
		})
	}
}

// TestHistoryFile: one key turns it off, and there is none without a folder for it.
func TestHistoryFile(t *testing.T) {
	for _, name := range []string{"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"} {
		t.Setenv(name, "")
	}
	if got := HistoryFile(config.Default()); got != "" {
		t.Errorf("without a folder: %q", got)
	}
	t.Setenv("HOME", "/home/me")
	if got := HistoryFile(config.Default()); got != "/home/me/.local/state/tributary/history" {
		t.Errorf("at home: %q", got)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "/my/state")
	if got := HistoryFile(config.Default()); got != "/my/state/tributary/history" {
		t.Errorf("in the state folder: %q", got)
	}
	t.Setenv("STATE_DIRECTORY", "/var/lib/tributary")
	cfg := config.Default()
	if got := HistoryFile(cfg); got != "/var/lib/tributary/history" {
		t.Errorf("by default: %q", got)
	}
	if cfg, _ = config.Parse("remember = false"); HistoryFile(cfg) != "" {
		t.Errorf("turned off: %q", HistoryFile(cfg))
	}
}
