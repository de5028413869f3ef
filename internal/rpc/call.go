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

// answer answers a call or a batch from a page or extension, whose origin is "" if it is another program. shown reports whether
// one of the calls had the token.
func (s *Server) answer(text []byte, origin string) (answer any, status int, shown bool) {
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		r := response{ID: null, JSONRPC: "2.0", Error: &failure{codeParse, "Parse error."}}
		return r, r.status(), false
	}
	if text[0] != '[' {
		r, shown := s.one(text, origin)
		return r, r.status(), shown
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(text, &batch); err != nil || len(batch) > maxCalls {
		r := response{ID: null, JSONRPC: "2.0", Error: &failure{codeInvalidRequest, "Invalid Request."}}
		return r, r.status(), false
	}
	all := []response{}
	for _, text := range batch {
		r, known := s.one(text, origin)
		shown = shown || known
		all = append(all, r)
	}
	return all, http.StatusOK, shown
}

// one answers one call.
func (s *Server) one(text []byte, origin string) (r response, shown bool) {
	r = response{ID: null, JSONRPC: "2.0"}
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(text, &request); err != nil || request.ID == nil {
		r.Error = &failure{codeInvalidRequest, "Invalid Request."}
		return r, false
	}
	r.ID = request.ID
	if request.Method == nil {
		r.Error = &failure{codeInvalidRequest, "Invalid Request."}
		return r, false
	}
	var params []json.RawMessage
	if request.Params != nil && json.Unmarshal(request.Params, &params) != nil {
		r.Error = &failure{codeInvalidParams, "Invalid params."}
		return r, false
	}
	r.Result, shown, r.Error = s.call(*request.Method, params, origin)
	return r, shown
}

// open are the methods that do not need a token: they neither disclose nor change anything. The calls in a multicall have their
// own tokens.
var open = map[string]func(*Server, args) (any, error){
	"system.listMethods":       listMethods,
	"system.listNotifications": listNotifications,
}

// call calls a method.
func (s *Server) call(name string, params args, origin string) (result any, shown bool, f *failure) {
	token, given := params.token()
	if given {
		params = params[1:]
	}
	if name == "system.multicall" {
		return s.multicall(params, origin)
	}
	do, free := open[name]
	if !free {
		if !given || !s.known(token, origin) {
			return nil, false, failed("Unauthorized")
		}
		shown = true
		if do = methods[name]; do == nil {
			if unsupported[name] {
				return nil, shown, failed("%s is not supported by Tributary.", name)
			}
			return nil, shown, failed("No such method: %s", name)
		}
	}
	result, err := do(s, params)
	if err == nil {
		return result, shown, nil
	}
	if !errors.As(err, &f) {
		f = failed("%v", err)
	}
	return nil, shown, f
}

// multicall calls several methods: for each, the result contains an array with its result, or its error.
func (s *Server) multicall(params args, origin string) (result any, shown bool, f *failure) {
	var calls []json.RawMessage
	if err := params.get(0, &calls); err != nil {
		return nil, false, failed("%v", err)
	}
	if len(calls) > maxCalls {
		return nil, false, failed("More than %d calls.", maxCalls)
	}
	all := []any{}
	for _, text := range calls {
		var c struct {
			Method *string         `json:"methodName"`
			Params json.RawMessage `json:"params"`
		}
		var params args
		var f *failure
		switch err := json.Unmarshal(text, &c); {
		case err != nil:
			f = failed("system.multicall expected struct.")
		case c.Method == nil:
			f = failed("Missing methodName.")
		case *c.Method == "system.multicall":
			f = failed("Recursive system.multicall forbidden.")
		case c.Params != nil && json.Unmarshal(c.Params, &params) != nil:
			f = failed("system.multicall expected struct.")
		default:
			var r any
			var known bool
			if r, known, f = s.call(*c.Method, params, origin); f == nil {
				all = append(all, []any{r})
			}
			shown = shown || known
		}
		if f != nil {
			all = append(all, f)
		}
	}
	return all, shown, nil
}

// known reports whether a token is the general one, or that of the calling extension.
func (s *Server) known(token, origin string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1 || s.Pairings.Has(origin, token)
}

// args are the parameters of a call.
type args []json.RawMessage

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
