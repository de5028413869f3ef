package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// summary describes a download in one line.
func summary(r get.Result) string {
	if r.Already {
		return r.File + ": complete already, as it is there without a .part; --force downloads it again"
	}
	var links []string
	var received, waste int64
	for _, l := range r.Links {
		received, waste = received+l.Bytes, waste+l.Waste
		if l.Bytes > 0 {
			links = append(links, l.Link+" "+megabytes(l.Bytes))
		}
	}
	file := r.File
	if file == "-" {
		file = "standard output"
	}
	line := fmt.Sprintf("%s: %s in %.1f s", file, megabytes(r.Size), r.Took.Seconds())
	if s := r.Took.Seconds(); s > 0 && received > 0 {
		line += ", " + megabits(float64(r.Size-r.Resumed)/s)
	}
	if r.Resumed > 0 {
		links = append(links, "resumed "+megabytes(r.Resumed))
	}
	if waste > 0 {
		links = append(links, "received twice "+megabytes(waste))
	}
	if r.Undivided != "" && r.Size >= longEnough {
		links = append(links, "over one link: "+transport.ReasonText(r.Undivided))
	}
	if len(links) > 0 {
		line += " (" + strings.Join(links, ", ") + ")"
	}
	return line
}

// longEnough is the size from which it is worth saying why a file came over one link.
const longEnough = 1e6

// megabytes formats a size in bytes.
func megabytes(n int64) string {
	if n < 1e3 {
		return fmt.Sprintf("%d B", n)
	}
	if n < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// megabits formats a rate in bytes per second.
func megabits(rate float64) string { return fmt.Sprintf("%.1f Mbit/s", rate*8/1e6) }

// getJSON is the output of get --json for one URL.
type getJSON struct {
	URL      string     `json:"url"` // without a password
	File     string     `json:"file,omitempty"`
	Size     int64      `json:"size"`              // bytes of the file
	Resumed  int64      `json:"resumed,omitempty"` // of these, bytes from an earlier download
	Already  bool       `json:"already,omitempty"` // the file was there
	Checksum string     `json:"checksum,omitempty"`
	Seconds  float64    `json:"seconds"`
	Links    []linkJSON `json:"links"`
	// Undivided is why the response came over one link, one of the words of package tributary.
	Undivided string `json:"undivided,omitempty"`
	Waste     int64  `json:"waste"` // bytes received but not needed
	Error     string `json:"error,omitempty"`
	ExitCode  int    `json:"exit_code"`
}

type linkJSON struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Waste int64  `json:"waste"`

	RadioJoules float64 `json:"radio_joules,omitempty"` // by the model of its radio, if known
	Spared      string  `json:"spared,omitempty"`       // why the goal left out the link
}

func writeJSON(w io.Writer, url string, r get.Result, err error) error {
	j := getJSON{
		URL:       redacted(url),
		File:      r.File,
		Size:      r.Size,
		Resumed:   r.Resumed,
		Already:   r.Already,
		Checksum:  r.Checksum,
		Seconds:   r.Took.Round(time.Millisecond).Seconds(),
		Links:     []linkJSON{},
		Undivided: r.Undivided,
		ExitCode:  exitCode(err),
	}
	for _, l := range r.Links {
		j.Links = append(j.Links, linkJSON{
			Name:        l.Link,
			Bytes:       l.Bytes,
			Waste:       l.Waste,
			RadioJoules: l.Joules,
			Spared:      l.Spared,
		})
		j.Waste += l.Waste
	}
	if err != nil {
		j.Error = err.Error()
	}
	if err := json.NewEncoder(w).Encode(j); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// redacted returns a URL without its password.
func redacted(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
