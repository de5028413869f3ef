package rpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/queue"
)

// Limits on clients. The size is that of aria2's --rpc-max-request-size.
const (
	maxRequest   = 2 << 20  // bytes of a request or message
	maxAnswer    = 16 << 20 // bytes of all results in the response to it
	maxCalls     = 1000     // in it, those in batches and multicalls included
	maxBusy      = 4        // requests that are answered at the same time
	maxSockets   = 64       // open at the same time, that have shown the token
	maxStrangers = 16       // others, each for shortTime
	shortTime    = 10 * time.Second
	idleTime     = 2 * time.Minute
)

// path is the path of aria2's interface.
const path = "/jsonrpc"

// Config configures a Server. All fields except Owner, Pairings and Origins must be set.
type Config struct {
	Queue   *queue.Queue
	Token   string
	Version string // program version
	Session string // ID of this run, 40 hexadecimal digits
	Log     *slog.Logger

	// Owner returns the user ID of a client; nil = users are not distinguished. Only root and the user who runs
	// Tributary are let in.
	Owner admission.Owner
	// Pairings are the extensions that the user has paired; the zero value has none and does not accept new ones.
	Pairings Pairings
	// Origins are the pages that may call in addition to extensions: "https://example.com", or "null" for pages in
	// files.
	Origins []string
}

// Server answers calls.
type Server struct {
	Config
	http      *http.Server
	codes     codes
	page      ownPage
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	busy      chan struct{} // one place for each request that is being answered
	places    chan struct{} // one place for each open socket that has shown the token
	strangers strangers
	sockets   sync.WaitGroup
}

// NewServer returns a Server; its HTTP server must serve the port. Close ends its sockets.
func NewServer(c Config) *Server {
	s := &Server{Config: c, places: make(chan struct{}, maxSockets), busy: make(chan struct{}, maxBusy)}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.http = s.guarded(s)
	return s
}

// guarded returns a server for root and the user who runs Tributary.
func (s *Server) guarded(h http.Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: shortTime,
		ReadTimeout:       shortTime,
		WriteTimeout:      3 * shortTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), // may quote requests
		Protocols:         new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	visitors := &admission.Control{
		Limits: admission.Limits{Each: 64, Sure: 16, All: 128, Refused: 8}, Named: []uint32{0, uint32(os.Getuid())},
	}
	visitors.Guard(server, s.Owner, func(u admission.User) bool {
		return s.Owner == nil || u.Known() && (u.UID == 0 || u.UID == int64(os.Getuid()))
	})
	return server
}

// HTTP returns the server for the port.
func (s *Server) HTTP() *http.Server { return s.http }

// Close ends the sockets, and waits for them.
func (s *Server) Close() {
	s.end()
	s.sockets.Wait()
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Origin")
	origin := r.Header.Get("Origin")
	switch place, welcome := admission.PlaceOf(r.Context()); {
	case !welcome:
		http.Error(w, "This port serves only root and the user who runs Tributary.", http.StatusForbidden)
		return
	case place != admission.Admitted:
		http.Error(w, "Too many connections are open.", http.StatusServiceUnavailable)
		return
	case !admission.OwnName(r):
		http.Error(w, "The Host field does not name this server.", http.StatusForbidden)
		return
	case !s.admits(r.Header):
		http.Error(w, "Pages of this origin may not use RPC. If you trust this front end, list it in rpc_origins.",
			http.StatusForbidden)
		return
	case r.URL.Path != path:
		http.NotFound(w, r)
		return
	case origin != "":
		h.Set("Access-Control-Allow-Origin", origin)
	}
	switch {
	case r.Method == http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "POST, GET")
		h.Set("Access-Control-Allow-Headers", "Content-Type")
		h.Set("Access-Control-Max-Age", "600")
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			h.Set("Access-Control-Allow-Private-Network", "true")
		}
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet && r.Header.Get("Upgrade") != "":
		s.socket(w, r)
	case r.Method == http.MethodGet:
		text, ok := query(r.URL.Query())
		if !ok {
			http.Error(w, "JSONP would expose responses to any page: use POST.", http.StatusBadRequest)
			return
		}
		s.reply(w, text, origin)
	case r.Method == http.MethodPost:
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, "The request is larger than 2 MiB.", http.StatusRequestEntityTooLarge)
			return
		}
		if err == nil {
			s.reply(w, text, origin)
		}
	default:
		h.Set("Allow", "POST, GET, OPTIONS")
		http.Error(w, "Use POST, GET or WebSocket.", http.StatusMethodNotAllowed)
	}
}

// extensions are the schemes of extensions' origins. A page cannot have them.
var extensions = []string{"chrome-extension", "moz-extension", "safari-web-extension"}

// admits reports whether a request does not come from a page, or comes from one that may call. A browser names the
// page's origin in all requests except simple GETs, which it marks as coming from another site (Fetch Metadata).
func (s *Server) admits(h http.Header) bool {
	origins := h.Values("Origin")
	if len(origins) == 0 {
		site := h.Get("Sec-Fetch-Site")
		return site == "" || site == "none"
	}
	if len(origins) > 1 {
		return false
	}
	return slices.Contains(s.Origins, origins[0]) || isExtension(origins[0]) || s.page.is(origins[0])
}

// isExtension reports whether an origin is an extension's.
func isExtension(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && slices.Contains(extensions, u.Scheme)
}

// query returns the request in the query of a GET, whose params are in Base64. It returns false if the query asks for
// JSONP.
func query(q url.Values) (text []byte, ok bool) {
	if q.Has("jsoncallback") {
		return nil, false
	}
	params, err := base64.StdEncoding.DecodeString(q.Get("params"))
	if err != nil {
		return []byte("?"), true // not JSON
	}
	if !q.Has("method") {
		return params, true // a batch
	}
	request := map[string]any{"jsonrpc": "2.0", "method": q.Get("method"), "id": q.Get("id")}
	if len(params) > 0 {
		request["params"] = json.RawMessage(params)
	}
	text, err = json.Marshal(request)
	if err != nil {
		return []byte("?"), true
	}
	return text, true
}

// reply answers the calls in text over HTTP.
func (s *Server) reply(w http.ResponseWriter, text []byte, origin string) {
	answer, status, _ := s.answer(text, origin)
	w.Header().Set("Content-Type", "application/json-rpc")
	w.WriteHeader(status)
	_, _ = w.Write(encode(answer)) // the client is gone
}

// encode encodes JSON as front ends expect it: < and & are not escaped.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // impossible for the values of this package
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
