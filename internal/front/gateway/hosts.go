package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// Hosts is the set of hosts that the gateway fetches from. It is safe for concurrent use.
type Hosts struct {
	listed []string
	path   string // of the record; "" = none

	recorded atomic.Pointer[record]

	mu     sync.Mutex
	linked []string // see link; the oldest first
}

// record maps each program to the hosts that it uses through the gateway.
type record map[string][]string

const (
	maxRecord = 1 << 20 // bytes
	maxHosts  = 256     // maximum for one program, and for all index pages
)

// NewHosts returns the hosts of the configuration and those in the record at path, which need not exist; path may be
// "". If the record cannot be read, NewHosts returns an error and the Hosts without the record.
func NewHosts(listed []string, path string) (*Hosts, error) {
	h := &Hosts{path: path}
	for _, s := range listed {
		host, err := cleanHost(s)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		h.listed = append(h.listed, host)
	}
	h.recorded.Store(&record{})
	if path == "" {
		return h, nil
	}
	r, err := readRecord(path)
	if err == nil {
		h.recorded.Store(&r)
	}
	return h, err
}

func readRecord(path string) (record, error) {
	b, err := statefile.Read(path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	r := record{}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("hosts of the gateway: %w", err)
	}
	for _, hosts := range r {
		for _, host := range hosts {
			if clean, err := cleanHost(host); err != nil || clean != host {
				return nil, fmt.Errorf("hosts of the gateway: %s: %q is not a host", path, host)
			}
		}
	}
	return r, nil
}

// Record replaces the hosts of a program; an empty list removes them.
func (h *Hosts) Record(ctx context.Context, program string, hosts []string) error {
	if h.path == "" {
		return errors.New("this proxy does not record hosts: list them as gateway_hosts in the configuration")
	}
	var clean []string
	for _, s := range hosts {
		host, err := cleanHost(s)
		if err != nil {
			return fmt.Errorf("%q: %w", s, err)
		}
		clean = append(clean, host)
	}
	if len(clean) > maxHosts || program == "" || len(program) > 64 {
		return errors.New("too many hosts, or an invalid program name")
	}
	if err := statefile.Own(h.path); err != nil {
		return err
	}
	unlock, err := statefile.Lock(ctx, h.path)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := readRecord(h.path)
	if err != nil {
		return err
	}
	if r[program] = clean; len(clean) == 0 {
		delete(r, program)
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = statefile.Replace(h.path, b)
	}
	if err == nil {
		h.recorded.Store(&r)
	}
	return err
}

// All returns the listed and recorded hosts, sorted.
func (h *Hosts) All() []string {
	all := slices.Clone(h.listed)
	for hosts := range maps.Values(*h.recorded.Load()) {
		all = append(all, hosts...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Recorded returns the hosts of a program.
func (h *Hosts) Recorded(program string) []string { return (*h.recorded.Load())[program] }

// chosen reports whether the user chose a host.
func (h *Hosts) chosen(host string) bool {
	if slices.Contains(h.listed, host) {
		return true
	}
	for _, hosts := range *h.recorded.Load() {
		if slices.Contains(hosts, host) {
			return true
		}
	}
	return false
}

// allowed reports whether clients may request objects from a host.
func (h *Hosts) allowed(host string) bool {
	if h.chosen(host) {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.linked, host)
}

// link lets clients request objects from a host that an index page of an allowed host links to. It reports whether they
// may: like redirects, links to the local network are not followed.
func (h *Hosts) link(host string) bool {
	if h.chosen(host) {
		return true
	}
	if !onInternet(host) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.linked, host) {
		if len(h.linked) == maxHosts {
			h.linked = slices.Delete(h.linked, 0, 1)
		}
		h.linked = append(h.linked, host)
	}
	return true
}
