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

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/front/chain"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 20

// own are the fields that a download sets itself, and those that would change the framing of the request.
var own = []string{
	"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Host",
	"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Te", "Trailer",
	"Expect", "Http2-Settings",
}

// Reserved reports whether a line "Name: value" has a field that a download sets itself.
func Reserved(line string) bool {
	name, _, _ := strings.Cut(line, ":")
	return slices.Contains(own, http.CanonicalHeaderKey(strings.TrimSpace(name)))
}

// CheckURL returns an error if a URL cannot be downloaded. The error does not contain the URL.
func CheckURL(url string) error {
	_, err := parseLocation(url)
	return err
}

// CheckFields returns an error if h cannot be used as Options.Header.
func CheckFields(h http.Header) error {
	for _, name := range own {
		if _, ok := h[name]; ok {
			return fmt.Errorf("the field %s cannot be set: Tributary needs it to divide the download", name)
		}
	}
	if reason := transport.OneTime(h); reason != "" {
		return fmt.Errorf("these credentials are valid for one request only (%s), but a divided download makes several: "+
			"use a token or a password (Bearer, Basic)", reason)
	}
	return nil
}

// ask requests the object from an offset, of this version if there is one, and follows redirects. It returns an answer
// with usable content, and where it came from.
func (d *download) ask(from int64, of *version) (*http.Response, location, error) {
	w := &walk{download: d, at: d.asked, header: d.Header.Clone()}
	if w.header == nil {
		w.header = http.Header{}
	}
	if _, ok := w.header["User-Agent"]; !ok {
		w.header["User-Agent"] = nil // keeps net/http from adding its own
	}
	if w.at.auth != "" && w.header.Get("Authorization") == "" {
		w.header.Set("Authorization", w.at.auth)
	}
	if from > 0 {
		w.header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
		w.header.Set("If-Range", of.validator)
	}
	client := http.Client{Transport: w, CheckRedirect: w.redirected}
	r := &http.Request{Method: http.MethodGet, URL: w.at.request(), Header: w.header.Clone()}
	ctx := d.ctx
	if of != nil && of.size > 0 && of.place == w.at.place() { // the request goes there directly, without redirects
		ctx = transport.With(ctx, func(o *transport.Options) { o.Size = of.size })
	}
	resp, err := client.Do(r.WithContext(ctx))
	if err == nil {
		if err = d.acceptable(resp, from, w.at); err == nil {
			return resp, w.at, nil
		}
		resp.Body.Close()
		return nil, w.at, err
	}
	if e := (*Error)(nil); errors.As(err, &e) { // without the text that net/http puts before it
		return nil, w.at, e
	}
	// the only error that net/http detects itself
	return nil, w.at, nowhere(errors.New("the Location field is not a URL"))
}

// walk is the position of a request that follows redirects.
type walk struct {
	*download
	at      location
	header  http.Header // of the next request
	cookies chain.Cookies
}

// RoundTrip implements http.RoundTripper. Its errors are *Error.
func (w *walk) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	w.cookies.Add(r.URL, r.Header)
	resp, err := w.Transport.RoundTrip(r)
	if err != nil {
		if w.at.host != w.asked.host && transport.FailureOf(err).Outcome == fault.Rebound {
			return nil, inward(w.at)
		}
		return nil, unreachable(err, w.at)
	}
	w.cookies.Keep(r.URL, resp.Header)
	if leads(resp) {
		if to := resp.Header.Get("Location"); to != "" {
			resp.Header.Set("Location", chain.Spell(to))
		}
		resp.Body.Close() // net/http would read some of it first
		resp.Body = http.NoBody
	}
	return resp, nil
}

// guide is a Transport that knows where names lead.
type guide interface {
	// Inward reports whether a name led to this machine or its networks when it was dialed.
	Inward(host string) bool
	// KeepOut keeps a name from leading there until release is called.
	KeepOut(host string) (release func())
}

// mayLead returns an error if the server of the user's URL is on the internet, and a redirect leads from there to this
// machine or its networks. It makes sure that the name of a redirect does not lead there either.
func (w *walk) mayLead(to location) error {
	g, knows := w.Transport.(guide)
	if to.host == w.asked.host || chain.Check(w.asked.host) != nil || knows && g.Inward(w.asked.host) {
		return nil
	}
	if chain.Check(to.host) != nil {
		return inward(to)
	}
	if knows {
		w.release = append(w.release, g.KeepOut(to.host))
	}
	return nil
}

// redirected decides whether the redirect to r is followed, and replaces the fields of r: net/http copied more than r
// may have.
func (w *walk) redirected(r *http.Request, via []*http.Request) error {
	next, err := newLocation(r.URL)
	switch {
	case err != nil:
		return nowhere(err)
	case w.at.url.Scheme == "https" && next.url.Scheme == "http" && !w.AllowDowngrade:
		return &Error{
			Kind:     Server,
			Redirect: true,
			Host:     next.url.Host,
			Err: fmt.Errorf("the server redirects from https to an http address (%s), which cannot be verified",
				next.url.Host),
			Next: "to accept this, add --allow-downgrade, and verify the file with --checksum",
		}
	case len(via) > maxRedirects:
		return &Error{
			Kind:     Server,
			Redirect: true,
			Host:     next.url.Host,
			Err: fmt.Errorf("more than %d redirects, the last to %s",
				maxRedirects, next.url.Host),
			Next: "open the URL in a browser to see whether it needs a login",
		}
	case next.origin() != w.at.origin():
		maps.DeleteFunc(w.header, func(name string, _ []string) bool { return !transport.Harmless(name) })
	}
	if err := w.mayLead(next); err != nil {
		return err
	}
	w.at = next
	r.URL, r.Header = next.request(), w.header.Clone()
	return nil
}

// inward returns the error of a redirect from the internet to this machine or its networks.
func inward(to location) *Error {
	return &Error{
		Kind:     Server,
		Redirect: true,
		Host:     to.url.Host,
		Err:      fmt.Errorf("%w (%s)", chain.ErrInward, to.url.Host),
		Next:     "if you trust that, download from there directly",
	}
}

// nowhere returns the error of a redirect that cannot be followed.
func nowhere(err error) *Error {
	return &Error{
		Kind: Server, Redirect: true, Next: "check the URL",
		Err: fmt.Errorf("the server redirects to an address that cannot be used: %w", err),
	}
}

// leads reports whether an answer is a redirect.
func leads(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// acceptable returns the error that an answer represents, or nil if its content is that of the object (or may be, for a
// resume).
func (d *download) acceptable(resp *http.Response, from int64, at location) error {
	if leads(resp) { // otherwise net/http would have followed it
		return &Error{
			Kind:     Server,
			Redirect: true,
			Host:     at.url.Host,
			Err: fmt.Errorf("the server answers %s without a Location field",
				status(resp.StatusCode)),
			Next: "check the URL",
		}
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNonAuthoritativeInfo:
		return nil
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		if from > 0 {
			return nil
		}
	}
	return refused(resp, at)
}

// differs returns the reason why the content of an answer cannot be joined to the first from bytes of a version, "" if
// it can (RFC 9110 section 15.3.7.3).
func differs(resp *http.Response, from int64, of version) string {
	const changed = "the file on the server has changed"
	id := transport.Identify(resp)
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return changed
	case resp.StatusCode != http.StatusPartialContent:
		if id.Validator == of.validator {
			return "the server cannot resume this download"
		}
		return changed
	}
	c, err := byterange.ParseContentRange(resp.Header.Get("Content-Range"))
	switch {
	case err != nil || len(resp.Header["Content-Range"]) != 1 || c.Range.Start != from || c.Range.Empty():
		return "the server sent another part than the requested one"
	case id.Validator != of.validator || c.Total != of.size || id.Coding != "" || markOf(id) != of.mark:
		return changed
	}
	return ""
}

// markOf returns a digest of the properties in which two versions may differ even if they have the same validator and
// size.
func markOf(id transport.Identity) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{id.ETag, id.Modified, id.Type, id.Location}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// status formats a status code as users know it.
func status(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

// Fields returns the header for the user's lines "Name: value"; "Name:" removes a field that would be sent otherwise.
// agent is the User-Agent, "" for none.
func Fields(lines []string, agent string) (http.Header, error) {
	h := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	if agent != "" {
		h.Set("User-Agent", agent)
	}
	var given []string
	for _, line := range lines {
		name, value, ok := cutField(line)
		if !ok {
			// may contain a secret, so is not shown
			return nil, errors.New(`a --header is not a field: write it as "Name: value"`)
		}
		if !slices.Contains(given, name) { // the first line with a name replaces the default
			given = append(given, name)
			h.Del(name)
		}
		if value != "" {
			h.Add(name, value)
		}
	}
	return h, CheckFields(h)
}
