package chain

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
)

// Cookies are those that servers set in one chain of redirects: some servers redirect in circles until they see their
// cookie again. A cookie is sent only to the origin that set it, whatever its Domain, and ends with the chain. The zero
// value has none.
type Cookies struct {
	of map[string]*cookiejar.Jar // by origin
}

// Keep keeps the cookies in the header of a response from u.
func (c *Cookies) Keep(u *url.URL, response http.Header) {
	set := (&http.Response{Header: response}).Cookies()
	if len(set) == 0 {
		return
	}
	jar := c.of[origin(u)]
	if jar == nil {
		jar, _ = cookiejar.New(nil) // never fails. It needs no list of public suffixes, since it serves one origin
		if c.of == nil {
			c.of = map[string]*cookiejar.Jar{}
		}
		c.of[origin(u)] = jar
	}
	jar.SetCookies(u, set)
}

// Add adds the cookies of u to the header of a request. They replace those with the same names that the client sends.
func (c *Cookies) Add(u *url.URL, request http.Header) {
	jar := c.of[origin(u)]
	if jar == nil {
		return
	}
	cookies := jar.Cookies(u)
	if len(cookies) == 0 {
		return
	}
	var pairs []string
	for _, line := range request["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if !slices.ContainsFunc(cookies, func(k *http.Cookie) bool { return k.Name == name }) {
				pairs = append(pairs, strings.TrimSpace(pair))
			}
		}
	}
	for _, k := range cookies {
		pairs = append(pairs, (&http.Cookie{Name: k.Name, Value: k.Value, Quoted: k.Quoted}).String())
	}
	request.Set("Cookie", strings.Join(pairs, "; "))
}

// origin returns scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
