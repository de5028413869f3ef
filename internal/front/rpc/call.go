package rpc

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error codes: aria2's own, and those of JSON-RPC 2.0 section 5.1.
const (
	codeFailed         = 1
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
)

// failure is the error of a call.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return f.Message }

func failed(format string, args ...any) *failure {
	return &failure{codeFailed, fmt.Sprintf(format, args...)}
}

// response is the answer to a call.
type response struct {
	ID      json.RawMessage `json:"id"`
	JSONRPC string          `json:"jsonrpc"`
	Result  any             `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

// null is the ID in a response if the ID of the call is not known.
var null = json.RawMessage("null")

// status returns the HTTP status code that aria2 sends with r.
func (r response) status() int {
	switch {
	case r.Error == nil:
		return http.StatusOK
	case r.Error.Code == codeFailed, r.Error.Code == codeInvalidRequest:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// message is a message with one or more calls. The limits hold for all of them together, those in batches and
// multicalls included.
type message struct {
	*Server
	origin string          // of the page or extension that calls; "" = another program
	calls  int             // so far
	size   int             // bytes of the results so far
	opened map[string]bool // methods that were called without the token
	shown  bool            // one of the calls had the token
}

// errCalls reports too many calls.
var errCalls = failed("More than %d calls in a request.", maxCalls)

// answer answers a call or a batch from a page or extension, whose origin is "" if it is another program. shown reports
// whether one of the calls had the token.
func (s *Server) answer(text []byte, origin string) (answer any, status int, shown bool) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		r := response{ID: null, JSONRPC: "2.0", Error: &failure{codeParse, "Parse error."}}
		return r, r.status(), false
	}
	m := &message{Server: s, origin: origin, opened: map[string]bool{}}
	if text[0] != '[' {
		m.calls++
		r := m.one(text)
		return r, r.status(), m.shown
	}
	batch, err := elements(text, maxCalls)
	if err != nil {
		r := response{ID: null, JSONRPC: "2.0", Error: &failure{codeInvalidRequest, "Invalid Request."}}
		return r, r.status(), false
	}
	m.calls += len(batch)
	all := []response{}
	for _, text := range batch {
		all = append(all, m.one(text))
	}
	return all, http.StatusOK, m.shown
}

// elements returns the elements of a JSON array, or an error if there are more than most.
func elements(text []byte, most int) (all []json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.New("not an array")
	}
	for d.More() {
		if len(all) == most {
			return nil, errCalls
		}
		var e json.RawMessage
		if err := d.Decode(&e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// one answers one call.
func (m *message) one(text []byte) (r response) {
	r = response{ID: null, JSONRPC: "2.0"}
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(text, &request); err != nil || request.ID == nil {
		r.Error = &failure{codeInvalidRequest, "Invalid Request."}
		return r
	}
	r.ID = request.ID
	if request.Method == nil {
		r.Error = &failure{codeInvalidRequest, "Invalid Request."}
		return r
	}
	params, err := arguments(request.Params)
	if err != nil {
		r.Error = &failure{codeInvalidParams, "Invalid params."}
		return r
	}
	r.Result, r.Error = m.call(*request.Method, params)
	return r
}

// open are the methods that do not need a token, each of them once in a message: they neither disclose nor change
// anything without a secret. The calls in a multicall have their own tokens.
var open = map[string]func(*message, args) (any, error){
	"system.listMethods":       listMethods,
	"system.listNotifications": listNotifications,
	"tributary.prove":          (*message).prove,
	"tributary.pair":           (*message).pair,
}

// call calls a method.
func (m *message) call(name string, params args) (result any, f *failure) {
	token, given := params.token()
	if given {
		params = params[1:]
	}
	if name == "system.multicall" {
		return m.multicall(params)
	}
	do, free := open[name]
	if free {
		if m.opened[name] {
			return nil, failed("%s can be called once in a request.", name)
		}
		m.opened[name] = true
	} else {
		if !given || !m.known(token, m.origin) {
			return nil, failed("Unauthorized")
		}
		m.shown = true
		method := methods[name]
		if method == nil {
			if unsupported[name] {
				return nil, failed("%s is not supported by Tributary.", name)
			}
			return nil, failed("No such method: %s", name)
		}
		do = func(m *message, a args) (any, error) { return method(m.Server, a) }
	}
	if m.size > maxAnswer { // before the method changes anything
		return nil, errAnswer
	}
	result, err := do(m, params)
	if err != nil {
		if !errors.As(err, &f) {
			f = failed("%v", err)
		}
		return nil, f
	}
	text := encode(result)
	if m.size += len(text); m.size > maxAnswer {
		return nil, errAnswer
	}
	return json.RawMessage(text), nil
}

// errAnswer reports an answer that is too large.
var errAnswer = failed("The answer is larger than %d MiB: ask for fewer downloads or keys at a time.", maxAnswer>>20)

// multicall calls several methods: for each, the result contains an array with its result, or its error.
func (m *message) multicall(params args) (result any, f *failure) {
	if len(params) == 0 {
		return nil, failed("The parameter at 0 is required but missing.")
	}
	calls, err := elements(params[0], maxCalls-m.calls)
	switch {
	case errors.Is(err, errCalls):
		return nil, errCalls
	case err != nil:
		return nil, failed("The parameter at 0 has wrong type.")
	}
	m.calls += len(calls)
	all := []any{}
	for _, text := range calls {
		var c struct {
			Method *string         `json:"methodName"`
			Params json.RawMessage `json:"params"`
		}
		var params args
		var f *failure
		err := json.Unmarshal(text, &c)
		if err == nil {
			params, err = arguments(c.Params)
		}
		switch {
		case err != nil:
			f = failed("system.multicall expected struct.")
		case c.Method == nil:
			f = failed("Missing methodName.")
		case *c.Method == "system.multicall":
			f = failed("Recursive system.multicall forbidden.")
		default:
			var r any
			if r, f = m.call(*c.Method, params); f == nil {
				all = append(all, []any{r})
			}
		}
		if f != nil {
			all = append(all, f)
		}
	}
	return all, nil
}

// known reports whether a token is the general one, or that of the calling extension or page.
func (s *Server) known(token, origin string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1 || s.Pairings.Has(origin, token) ||
		s.page.has(origin, token)
}

// args are the parameters of a call.
type args []json.RawMessage

// maxArgs is more than the parameters of any method.
const maxArgs = 16

// arguments returns the parameters of a call, which may be missing.
func arguments(params json.RawMessage) (args, error) {
	if params == nil || bytes.Equal(params, null) {
		return nil, nil
	}
	return elements(params, maxArgs)
}

// token returns the token at the beginning of the parameters.
func (a args) token() (token string, ok bool) {
	if len(a) == 0 || json.Unmarshal(a[0], &token) != nil {
		return "", false
	}
	return strings.CutPrefix(token, "token:")
}

// get decodes a required parameter.
func (a args) get(i int, to any) error {
	if i >= len(a) {
		return failed("The parameter at %d is required but missing.", i)
	}
	return a.may(i, to)
}

// may decodes an optional parameter.
func (a args) may(i int, to any) error {
	if i < len(a) && (bytes.Equal(a[i], null) || json.Unmarshal(a[i], to) != nil) {
		return failed("The parameter at %d has wrong type.", i)
	}
	return nil
}
