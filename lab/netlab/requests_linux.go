package netlab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// Request is a line of an origin's access log.
type Request struct {
	Method     string
	Status     int
	Range      string // the Range field, "" if there was none
	Client     string // address: identifies the link
	BytesSent  int64  // head and body; only the body for Apache
	Connection int64  // number of the connection, unique among those of a Client
	Protocol   string // such as "HTTP/2.0"
	Began      time.Time
}

// Connections returns how many connections carried the requests, by the name of the link. links names the link of a
// client's address.
func Connections(requests []Request, links map[string]string) map[string]int {
	type connection struct {
		link   string
		number int64
	}
	seen, n := map[connection]bool{}, map[string]int{}
	for _, q := range requests {
		if c := (connection{links[q.Client], q.Connection}); !seen[c] {
			seen[c] = true
			n[c.link]++
		}
	}
	return n
}

// readRequests reads an access log in the lab's format: the fields of Request in their order, separated by tabs. The
// time is that of the request's end, followed by the request's duration; both are in seconds.
func readRequests(path string) ([]Request, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	var requests []Request
	for line := range strings.Lines(string(text)) {
		r, err := parseRequest(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("access log: %q: %w", line, err)
		}
		requests = append(requests, r)
	}
	return requests, nil
}

func parseRequest(line string) (Request, error) {
	f := strings.Split(line, "\t")
	if len(f) != 9 {
		return Request{}, errors.New("want 9 fields")
	}
	r := Request{Method: f[0], Range: strings.TrimPrefix(f[2], "-"), Client: f[3], Protocol: f[6]}
	var errs [5]error
	var ended, took float64
	r.Status, errs[0] = strconv.Atoi(f[1])
	r.BytesSent, errs[1] = strconv.ParseInt(f[4], 10, 64)
	r.Connection, errs[2] = strconv.ParseInt(f[5], 10, 64)
	ended, errs[3] = strconv.ParseFloat(f[7], 64)
	took, errs[4] = strconv.ParseFloat(f[8], 64)
	r.Began = time.UnixMilli(int64(math.Round((ended - took) * 1e3)))
	return r, errors.Join(errs[:]...)
}
