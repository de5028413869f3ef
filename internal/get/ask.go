package get

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/opening"
	"github.com/tributary-http/tributary/internal/origin/byterange"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 20

// harmless are the fields that every origin gets that a redirect leads to. All others may hold what is meant for the one
// that the user named (RFC 9110 section 15.4): Authorization and Cookie do, and what sites invent.
var harmless = []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Range", "If-Range"}

// own are the fields that a download needs for itself, and those that would change how the request is framed.
var own = []string{
	"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Host", "Content-Length",
	"Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Te", "Trailer", "Expect", "Http2-Settings",
}

// CheckFields returns why h cannot be used as Options.Header, nil if it can.
func CheckFields(h http.Header) error {
	for _, name := range own {
		if _, ok := h[name]; ok {
			return fmt.Errorf("the field %s is not yours to set: Tributary needs it to divide the download", name)
		}
	}
	switch reason := opening.Refusal(opening.Request{Method: http.MethodGet, Scheme: "http", Fields: h}); reason {
	case opening.AuthConnection, opening.AuthOnce, opening.Signed:
		return fmt.Errorf("these credentials hold for one request only (%s), but a divided download makes several: "+
			"use a token or a password (Bearer, Basic)", reason)
	}
	return nil
}

// ask requests the object from an offset on, of that version if there is one, and follows redirects. It returns an answer
// with content that may be used, and where it came from.
func (d *download) ask(from int64, of *version) (*engine.Response, location, error) {
	at := d.asked
	h := d.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if at.auth != "" && h.Get("Authorization") == "" {
		h.Set("Authorization", at.auth)
	}
	if from > 0 {
		h.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
		h.Set("If-Range", of.validator)
	}
	for range maxRedirects + 1 {
		resp, err := d.Engine.Get(d.ctx, &engine.Request{Target: at.target(), Header: h})
		if err != nil {
			return nil, at, unreachable(err, at)
		}
		next, err := redirect(resp, at)
		if err == nil && next == nil {
			err = d.acceptable(resp, from, at)
		}
		if err == nil && next == nil {
			return resp, at, nil
		}
		resp.Body.Close()
		switch {
		case err != nil:
			return nil, at, err
		case at.url.Scheme == "https" && next.url.Scheme == "http" && !d.AllowDowngrade:
			return nil, at, &Error{
				Kind: Server, Err: fmt.Errorf("the server leads from https to an http address (%s), which nobody vouches for", next.url.Host),
				Next: "if that is all right, add --allow-downgrade; --checksum then proves what comes",
			}
		case next.origin() != at.origin():
			maps.DeleteFunc(h, func(name string, _ []string) bool { return !slices.Contains(harmless, name) })
		}
		at = *next
	}
	return nil, at, &Error{
		Kind: Server, Err: fmt.Errorf("more than %d redirects, the last to %s", maxRedirects, at.url.Host),
		Next: "open the URL in a browser to see whether it needs a login",
	}
}

// redirect returns where an answer leads, nil if nowhere.
func redirect(resp *engine.Response, at location) (*location, error) {
	switch resp.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to := resp.Header.Get("Location")
	if to == "" {
		return nil, &Error{
			Kind: Server, Err: fmt.Errorf("the server answers %s without saying where to", status(resp.Status)), Next: "check the URL",
		}
	}
	next, err := at.follow(to)
	if err != nil {
		return nil, &Error{
			Kind: Server, Err: fmt.Errorf("the server leads to an address that cannot be used: %w", err), Next: "check the URL",
		}
	}
	return &next, nil
}

// acceptable returns the error that an answer is, nil if its content is (or, to a resume, may be) the object's.
func (d *download) acceptable(resp *engine.Response, from int64, at location) error {
	switch resp.Status {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
		return nil
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		if from > 0 {
			return nil
		}
	}
	return refused(resp, at)
}

// differs returns why the content of an answer cannot be joined to the first from bytes of a version, "" if it can
// (RFC 9110 section 15.3.7.3).
func differs(resp *engine.Response, from int64, of version) string {
	const changed = "the object has changed since"
	switch {
	case resp.Status == http.StatusRequestedRangeNotSatisfiable:
		return changed
	case resp.Status != http.StatusPartialContent:
		if resp.ID.Validator == of.validator {
			return "the server cannot go on in the middle"
		}
		return changed
	}
	c, err := byterange.ParseContentRange(resp.Header.Get("Content-Range"))
	switch {
	case err != nil || len(resp.Header["Content-Range"]) != 1 || c.Range.Start != from || c.Range.Empty():
		return "the server sends another part than it was asked for"
	case resp.ID.Validator != of.validator || c.Total != of.size || resp.ID.Coding != "" || markOf(resp.ID) != of.mark:
		return changed
	}
	return ""
}

// markOf returns a digest of the properties in which two versions may differ though they have one validator and one size.
func markOf(id engine.Identity) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{id.ETag, id.Modified, id.Type, id.Location}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// status writes a status code as users know it.
func status(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

// Fields returns the header that user's lines make, each "Name: value"; "Name:" leaves a field out that would be sent
// otherwise. agent is the User-Agent, "" for none.
func Fields(lines []string, agent string) (http.Header, error) {
	h := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	if agent != "" {
		h.Set("User-Agent", agent)
	}
	var given []string
	for _, line := range lines {
		name, value, ok := cutField(line)
		if !ok {
			return nil, errors.New(`a --header is no field: write it as "Name: value"`) // it may hold a secret, so it is not shown
		}
		if !slices.Contains(given, name) { // the first one replaces what would be sent otherwise
			given = append(given, name)
			h.Del(name)
		}
		if value != "" {
			h.Add(name, value)
		}
	}
	return h, CheckFields(h)
}
