package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Docker's registry is known by a name that is not its address.
const (
	dockerName = "docker.io"
	dockerHost = "registry-1.docker.io"
)

// registry serves container registries as their mirror (OCI distribution specification). The registry comes from the
// request:
//
//	/v2/NAME/...?ns=HOST  containerd, and programs based on it
//	/v2/HOST/NAME/...     podman, and clients that use the gateway as the registry
//	/v2/NAME/...          Docker, which uses mirrors only for its own registry
//
// Only the first kind of client knows the registry itself, and handles a demand for a token itself. For the others, the
// gateway requests an anonymous token.
func (x *exchange) registry(rest string) *failure {
	path, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return badRequest("The query is malformed.")
	}
	if path == "" && query == "" {
		return x.registryVersion()
	}
	host := dockerName
	space, knows := values["ns"]
	first, name, _ := strings.Cut(path, "/")
	switch {
	case knows && len(space) == 1:
		host = space[0]
		values.Del("ns")
		query = values.Encode()
	case knows:
		return badRequest("The query names more than one registry. Use one ns parameter.")
	case strings.ContainsAny(first, ".:"):
		host, path = first, name
	}
	t := target{path: "/v2/" + path}
	if query != "" {
		t.path += "?" + query
	}
	if t.host, err = cleanHost(host); err != nil {
		return badRequest(sentence(err))
	}
	if f := x.mayAsk(t.host); f != nil {
		return f
	}
	if t.host == dockerName {
		t.host = dockerHost
	}
	if path == "" {
		return x.registryVersion()
	}
	h := requestHeader(x.r.Header)
	if knows || h.Get("Authorization") != "" {
		return x.plainWith(t, h)
	}
	return x.anonymous(t, h)
}

// registryVersion answers clients that check whether this is a registry.
func (x *exchange) registryVersion() *failure {
	a := &answer{Response: &http.Response{StatusCode: http.StatusOK, Header: http.Header{
		"Docker-Distribution-Api-Version": {"registry/2.0"}, "Content-Type": {"application/json"},
	}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2}}
	x.reply(a)
	return nil
}

// plainWith serves an object unchanged, requested with these fields.
func (x *exchange) plainWith(t target, h http.Header) *failure {
	a, f := x.follow(t, h, nil)
	if f == nil {
		x.reply(a)
	}
	return f
}

// anonymous serves an object of a registry that may demand a token even for public objects.
func (x *exchange) anonymous(t target, h http.Header) *failure {
	key := t.host + repository(t.path)
	if token := x.g.tokens.get(key, time.Now()); token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	a, f := x.follow(t, h, nil)
	if f != nil {
		return f
	}
	if a.StatusCode != http.StatusUnauthorized || a.at.host != t.host {
		x.reply(a)
		return nil
	}
	realm, ok := challenge(a.Header.Values("Www-Authenticate"))
	if !ok {
		x.reply(a)
		return nil
	}
	token, lasts := x.token(t, realm)
	if token == "" {
		x.reply(a)
		return nil
	}
	a.Body.Close()
	x.g.tokens.put(key, token, time.Now().Add(lasts), time.Now())
	h.Set("Authorization", "Bearer "+token)
	return x.plainWith(t, h)
}

// repository returns the part of a path that a token is for, which is the part before the kind of object.
func repository(path string) string {
	for _, kind := range []string{"/manifests/", "/blobs/", "/tags/", "/referrers/"} {
		if i := strings.LastIndex(path, kind); i >= 0 {
			return path[:i]
		}
	}
	return path
}

// challenge returns the URL at which a registry issues tokens.
func challenge(fields []string) (string, bool) {
	for _, field := range fields {
		scheme, rest, _ := strings.Cut(field, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		values := url.Values{}
		realm := ""
		for rest != "" {
			var name, value string
			name, rest, _ = strings.Cut(strings.TrimLeft(rest, " ,"), "=")
			if quoted, ok := strings.CutPrefix(rest, `"`); ok {
				value, rest, ok = strings.Cut(quoted, `"`)
				if !ok {
					return "", false
				}
			} else {
				value, rest, _ = strings.Cut(rest, ",")
			}
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "realm":
				realm = value
			case "service":
				values.Set("service", value)
			case "scope":
				values.Set("scope", value)
			}
		}
		if realm == "" {
			return "", false
		}
		separator := "?"
		if strings.Contains(realm, "?") {
			separator = "&"
		}
		return realm + separator + values.Encode(), true
	}
	return "", false
}

const (
	maxToken  = 64 << 10 // bytes of an answer with a token
	tokenTime = time.Minute
	maxTokens = 256
)

// token requests a token without credentials, and returns it and how long to use it; "" if there is none.
func (x *exchange) token(registry target, realm string) (string, time.Duration) {
	t, err := registry.resolve(realm)
	if err != nil || !x.g.Hosts.chosen(t.host) && !onInternet(t.host) {
		return "", 0
	}
	asking := *x
	asking.r = x.r.Clone(x.r.Context())
	asking.r.Method = http.MethodGet
	a, f := asking.follow(t, http.Header{"User-Agent": x.r.Header["User-Agent"], "Accept-Encoding": {"identity"}}, nil)
	if f != nil {
		return "", 0
	}
	defer a.Body.Close()
	var given struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if a.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(a.Body, maxToken)).Decode(&given) != nil {
		return "", 0
	}
	if given.Token == "" {
		given.Token = given.AccessToken
	}
	lasts := tokenTime
	if given.ExpiresIn > 0 {
		lasts = min(time.Duration(given.ExpiresIn)*time.Second, time.Hour)
	}
	return given.Token, lasts * 9 / 10
}

// tokens caches anonymous tokens.
type tokens struct {
	mu sync.Mutex
	of map[string]token
}

type token struct {
	text string
	ends time.Time
}

func (t *tokens) get(key string, now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.of[key]; now.Before(k.ends) {
		return k.text
	}
	return ""
}

func (t *tokens) put(key, text string, ends, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, old := range t.of {
		if !now.Before(old.ends) {
			delete(t.of, k)
		}
	}
	if t.of == nil || len(t.of) >= maxTokens {
		t.of = map[string]token{}
	}
	t.of[key] = token{text, ends}
}
