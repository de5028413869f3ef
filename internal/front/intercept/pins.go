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

	"github.com/tributary-http/tributary/internal/host/statefile"
)

const (
	pinLife = 24 * time.Hour // after this time a program is tried again: it may trust the Authority by then
	// a program that rejected a certificate of one host is not tried with another for this long
	pinsAll     = time.Hour
	closedLife  = 10 * time.Minute
	maxClosed   = 2 // connections without a request before a program gets tunnels to a host
	maxPins     = 512
	maxPinsFile = 256 << 10
	pinsTime    = 2 * time.Second // time limit for writing them
)

// Pins records which programs reject certificates of an Authority, by host. A program that rejects one with an alert
// counts for pinLife, and for pinsAll with all hosts, unless it has accepted another. A connection that ends without a
// request may have another reason: two of them count, for closedLife, and none of a program that has accepted a
// certificate.
//
// They are kept in a file of the user, as salted hashes, so that a restarted program works immediately.
type Pins struct {
	path string // "" = in memory only
	log  *slog.Logger

	mu sync.Mutex
	pinsFile
}

// pinsFile is the content of the file. Hosts and programs are hashed, times are Unix seconds.
type pinsFile struct {
	Salt []byte                      `json:"salt"`
	Pins map[string]map[string]int64 `json:"pins"` // host -> program -> time at which it is forgotten
	// the same for connections that ended without a request
	Closed map[string]map[string]closing `json:"closed,omitempty"`
	// program -> time at which it is forgotten that it sent a request
	Accepts map[string]int64 `json:"accepts,omitempty"`
}

// closing counts connections that ended without a request.
type closing struct {
	N     int   `json:"n"`
	Other bool  `json:"other,omitempty"` // they carried something that is not HTTP
	Until int64 `json:"until"`
}

// OpenPins returns the pins in a file, which need not exist; "" = they are not stored. A file that cannot be read
// counts as empty.
func OpenPins(path string, log *slog.Logger) *Pins {
	p := &Pins{path: path, log: log}
	p.reset(make([]byte, sha256.Size))
	rand.Read(p.Salt) // never fails
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

func (p *Pins) reset(salt []byte) {
	p.pinsFile = pinsFile{salt, map[string]map[string]int64{}, map[string]map[string]closing{}, map[string]int64{}}
}

// take replaces what is known with the content of the file, if there is one. The lock must be held, or p not shared
// yet.
func (p *Pins) take(f pinsFile, now time.Time) {
	if f.Salt == nil {
		return
	}
	p.reset(f.Salt)
	valid := func(until int64, life time.Duration) bool {
		end := time.Unix(until, 0)
		return now.Before(end) && end.Before(now.Add(life+time.Minute))
	}
	left := maxPins
	for host, programs := range f.Pins {
		for program, until := range programs {
			if valid(until, pinLife) && left > 0 {
				set(p.Pins, host, program, until)
				left--
			}
		}
	}
	for host, programs := range f.Closed {
		for program, c := range programs {
			if valid(c.Until, closedLife) && left > 0 {
				set(p.Closed, host, program, c)
				left--
			}
		}
	}
	for program, until := range f.Accepts {
		if valid(until, pinLife) && left > 0 {
			p.Accepts[program] = until
			left--
		}
	}
}

func set[T any](of map[string]map[string]T, host, program string, value T) {
	if of[host] == nil {
		of[host] = map[string]T{}
	}
	of[host][program] = value
}

func (p *Pins) hash(kind, s string) string {
	h := hmac.New(sha256.New, p.Salt)
	h.Write([]byte(kind + "\x00" + s))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

func (p *Pins) host(s string) string {
	return p.hash("host", strings.ToLower(strings.TrimSuffix(s, ".")))
}

// knows reports whether the program matters for a connection to host.
func (p *Pins) knows(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.Pins[p.host(host)])+len(p.Closed[p.host(host)]) > 0 {
		return true
	}
	for _, programs := range p.Pins {
		for _, until := range programs {
			if lately(until, time.Now()) {
				return true
			}
		}
	}
	return false
}

// lately reports whether a rejection that is forgotten at a time, in Unix seconds, counts for all hosts.
func lately(until int64, now time.Time) bool {
	return now.Before(time.Unix(until, 0).Add(pinsAll - pinLife))
}

// pinned returns the reason why connections of program to host are not opened, "" if there is none.
func (p *Pins) pinned(program, host string) Reason {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, by := time.Now(), p.hash("program", program)
	if c := p.Closed[p.host(host)][by]; c.N >= maxClosed && now.Before(time.Unix(c.Until, 0)) {
		if c.Other {
			return OtherProtocol
		}
		return Closed
	}
	if until, ok := p.Pins[p.host(host)][by]; ok && now.Before(time.Unix(until, 0)) {
		return Pinned
	}
	if p.accepts(by, now) {
		return ""
	}
	for _, programs := range p.Pins {
		if until, ok := programs[by]; ok && lately(until, now) {
			return Rejected
		}
	}
	return ""
}

// accepts reports whether a program, given by its hash, has sent a request on an opened connection.
func (p *Pins) accepts(program string, now time.Time) bool {
	until, ok := p.Accepts[program]
	return ok && now.Before(time.Unix(until, 0))
}

// learn records that program rejected the certificate of host.
func (p *Pins) learn(program, host string) {
	p.change(func(now time.Time) { set(p.Pins, p.host(host), p.hash("program", program), now.Add(pinLife).Unix()) })
}

// accept records that program has sent a request on an opened connection.
func (p *Pins) accept(program string) {
	p.mu.Lock()
	known := p.accepts(p.hash("program", program), time.Now().Add(pinLife/2))
	p.mu.Unlock()
	if !known {
		p.change(func(now time.Time) {
			by := p.hash("program", program)
			p.Accepts[by] = now.Add(pinLife).Unix()
			for _, programs := range p.Closed {
				delete(programs, by)
			}
		})
	}
}

// accepted reports whether program has sent a request on an opened connection.
func (p *Pins) accepted(program string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepts(p.hash("program", program), time.Now())
}

// closed records that n connections of program to host ended without a request, and reports whether that counts.
func (p *Pins) closed(program, host string, n int) bool {
	counts := !p.accepted(program)
	if counts {
		p.change(func(now time.Time) {
			c := p.Closed[p.host(host)][p.hash("program", program)]
			set(p.Closed, p.host(host), p.hash("program", program),
				closing{min(c.N+n, maxClosed), false, now.Add(closedLife).Unix()})
		})
	}
	return counts
}

// other records that a connection of program to host carried something that is not HTTP.
func (p *Pins) other(program, host string) {
	p.change(func(now time.Time) {
		set(p.Closed, p.host(host), p.hash("program", program), closing{maxClosed, true, now.Add(closedLife).Unix()})
	})
}

// change records something, and writes the file.
func (p *Pins) change(record func(now time.Time)) {
	if p.path == "" {
		p.apply(pinsFile{}, record, time.Now())
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
		p.apply(pinsFile{}, record, time.Now())
		p.log.Warn("cannot store which programs accept certificates of the authority; it is remembered until the proxy stops", "error", err)
		return
	}
	defer unlock()
	text := p.apply(p.read(), record, time.Now()) // other processes may have written
	if err := statefile.Replace(p.path, text); err != nil {
		p.log.Warn("cannot store which programs accept certificates of the authority", "error", err)
	}
}

// apply is change without the file access: it takes the content of the file and returns the new content.
func (p *Pins) apply(f pinsFile, record func(now time.Time), now time.Time) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(f, now)
	n := len(p.Accepts)
	for _, programs := range p.Pins {
		n += len(programs)
	}
	for _, programs := range p.Closed {
		n += len(programs)
	}
	if n < maxPins {
		record(now)
	}
	text, err := json.Marshal(p.pinsFile)
	if err != nil { // impossible for this type
		panic(err)
	}
	return text
}
