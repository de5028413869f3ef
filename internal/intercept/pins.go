package intercept

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/statefile"
)

const (
	pinLife     = 24 * time.Hour // after this time a program is tried again: it may trust the Authority by then
	maxPins     = 512
	maxPinsFile = 256 << 10
	pinsTime    = 2 * time.Second // time limit for writing them
)

// Pins records which programs reject certificates of an Authority, by host. A program counts only after it has rejected one
// with an alert: a connection that fails for another reason proves nothing, and must not disable interception permanently.
//
// They are kept in a file of the user, as salted hashes, so that a restarted program works immediately.
type Pins struct {
	path string // "" = in memory only
	log  *slog.Logger

	mu   sync.Mutex
	salt []byte
	of   map[string]map[string]int64 // host -> program -> time at which it is forgotten, in Unix seconds; both hashed
}

// pinsFile is the content of the file.
type pinsFile struct {
	Salt []byte                      `json:"salt"`
	Pins map[string]map[string]int64 `json:"pins"`
}

// OpenPins returns the pins in a file, which need not exist; "" = they are not stored. A file that cannot be read counts as
// empty.
func OpenPins(path string, log *slog.Logger) *Pins {
	p := &Pins{path: path, log: log, salt: make([]byte, sha256.Size), of: map[string]map[string]int64{}}
	rand.Read(p.salt) // never fails
	p.take(p.read(), time.Now())
	return p
}

// read returns the content of the file, or the zero value if it cannot be read.
func (p *Pins) read() (f pinsFile) {
	if p.path == "" {
		return f
	}
	text, err := statefile.Read(p.path, maxPinsFile)
	if err != nil || json.Unmarshal(text, &f) != nil || len(f.Salt) < sha256.Size {
		return pinsFile{}
	}
	return f
}

// take replaces the known pins with the content of the file, if there is one. The lock must be held, or p not shared yet.
func (p *Pins) take(f pinsFile, now time.Time) {
	if f.Salt == nil {
		return
	}
	p.salt, p.of = f.Salt, map[string]map[string]int64{}
	left := maxPins
	for host, programs := range f.Pins {
		for program, until := range programs {
			if end := time.Unix(until, 0); now.Before(end) && end.Before(now.Add(pinLife+time.Minute)) && left > 0 {
				p.set(host, program, until)
				left--
			}
		}
	}
}

func (p *Pins) set(host, program string, until int64) {
	if p.of[host] == nil {
		p.of[host] = map[string]int64{}
	}
	p.of[host][program] = until
}

func (p *Pins) hash(kind, s string) string {
	h := hmac.New(sha256.New, p.salt)
	h.Write([]byte(kind + "\x00" + s))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

func (p *Pins) host(s string) string {
	return p.hash("host", strings.ToLower(strings.TrimSuffix(s, ".")))
}

// knows reports whether any program pins host.
func (p *Pins) knows(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.of[p.host(host)]) > 0
}

// pinned reports whether program pins host.
func (p *Pins) pinned(program, host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.of[p.host(host)][p.hash("program", program)]
	return ok && time.Now().Before(time.Unix(until, 0))
}

// learn records that program pins host, and writes the file.
func (p *Pins) learn(program, host string) {
	if p.path == "" {
		p.add(pinsFile{}, program, host, time.Now())
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pinsTime)
	defer cancel()
	err := statefile.Own(p.path)
	var unlock func()
	if err == nil {
		unlock, err = statefile.Lock(ctx, p.path)
	}
	if err != nil {
		p.add(pinsFile{}, program, host, time.Now())
		p.log.Warn("cannot store that a program accepts only the host's own certificate; it is remembered until the proxy stops", "error", err)
		return
	}
	defer unlock()
	text := p.add(p.read(), program, host, time.Now()) // other processes may have written
	if err := statefile.Replace(p.path, text); err != nil {
		p.log.Warn("cannot store which programs accept only the host's own certificate", "error", err)
	}
}

// add is learn without the file access: it takes the content of the file and returns the new content.
func (p *Pins) add(f pinsFile, program, host string, now time.Time) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(f, now)
	n := 0
	for _, programs := range p.of {
		n += len(programs)
	}
	if n < maxPins {
		p.set(p.host(host), p.hash("program", program), now.Add(pinLife).Unix())
	}
	text, err := json.Marshal(pinsFile{p.salt, p.of})
	if err != nil { // impossible for this type
		panic(err)
	}
	return text
}
