package rpc

import (
	"encoding/json"
	"strings"

	"github.com/tributary-http/tributary/internal/front/queue"
)

// maxConcurrent is the name of the option for the number of concurrent downloads.
const maxConcurrent = "max-concurrent-downloads"

// unmetered is the name of the option that keeps a new download off metered links. aria2 does not have it.
const unmetered = "tributary-unmetered"

// options are the options of a call: strings, or lists of strings. Options that are not read here have no effect, like
// names that aria2 does not know: extensions send many, and getOption reports the values in force.
type options map[string]json.RawMessage

// options returns the options of a call, if it has any.
func (a args) options(i int) (o options, err error) { return o, a.may(i, &o) }

// lines returns the lines of an option, which is a list or a text.
func (o options) lines(name string) (lines []string) {
	if json.Unmarshal(o[name], &lines) == nil {
		return lines
	}
	return strings.FieldsFunc(o.text(name), func(r rune) bool { return r == '\n' || r == '\r' })
}

// text returns the text of an option, or "" if it is not a text.
func (o options) text(name string) (text string) {
	if json.Unmarshal(o[name], &text) != nil {
		return ""
	}
	return text
}

// orderOptions are the options that belong to an order.
var orderOptions = []string{"dir", "out", "header", "referer", "user-agent"}

// orders reports whether o contains one of orderOptions.
func (o options) orders() bool {
	for _, name := range orderOptions {
		if o[name] != nil {
			return true
		}
	}
	return false
}

// apply applies the options to an order.
func (o options) apply(to *queue.Order) {
	for name, field := range map[string]*string{
		"dir": &to.Dir, "out": &to.Out, "referer": &to.Referer,
		"user-agent": &to.UserAgent,
	} {
		if o[name] != nil {
			*field = o.text(name)
		}
	}
	if o["header"] != nil {
		to.Header = o.lines("header")
	}
}

// orderOptions returns the options of an order.
func (s *Server) orderOptions(d queue.Order) map[string]string {
	all := s.globalOptions()
	all["dir"] = d.Dir
	for name, value := range map[string]string{"out": d.Out, "referer": d.Referer, "user-agent": d.UserAgent} {
		if value != "" {
			all[name] = value
		}
	}
	if d.Unmetered {
		all[unmetered] = "true"
	}
	if len(d.Header) > 0 {
		all["header"] = strings.Join(d.Header, "\n") + "\n"
	}
	return all
}

// globalOptions returns the options that apply to all downloads.
func (s *Server) globalOptions() map[string]string {
	return map[string]string{
		"dir": s.Queue.Dir, "user-agent": s.Queue.Agent, "allow-overwrite": "false", "auto-file-renaming": "true",
		"always-resume": "true", "check-certificate": "true",
	}
}
