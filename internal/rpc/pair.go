package rpc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"sync"
	"time"
)

// pairPath is where the user reads a code, and where an extension sends it.
const pairPath = "/pair"

// Limits on codes: one of 10^8 is right, and at most maxGuesses are checked.
const (
	codeTime   = 5 * time.Minute
	maxGuesses = 5
)

// codes holds the code on display. The zero value has none.
type codes struct {
	mu      sync.Mutex
	code    string // "" = none
	until   time.Time
	guesses int // remaining guesses
}

// fresh returns a new code, which replaces the previous one.
func (c *codes) fresh(now time.Time) string {
	n, err := rand.Int(rand.Reader, big.NewInt(1e8))
	if err != nil { // never fails
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code, c.until, c.guesses = fmt.Sprintf("%08d", n), now.Add(codeTime), maxGuesses
	return c.code
}

// use reports whether a code is the one on display. A code can be used once.
func (c *codes) use(code string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == "" || now.After(c.until) || c.guesses == 0 {
		return false
	}
	c.guesses--
	if subtle.ConstantTimeCompare([]byte(code), []byte(c.code)) != 1 {
		return false
	}
	c.code = ""
	return true
}

// pairHTML is the page that displays a code.
const pairHTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Pair an extension with Tributary</title></head>
<body><main><h1>Pair an extension with Tributary</h1>
<p>Type this code into the options of the extension:</p>
<p><strong id="code">%s %s</strong></p>
<p>The code is valid once, for five minutes. Anyone who has it can start downloads as you: do not enter it on any web page.</p></main></body></html>
`

// pair shows a code to the user who opens the page, and gives an extension that knows it its own token. Pages can do neither: the
// code is shown only in its own window, which no other page can read, and is accepted only from extensions.
func (s *Server) pair(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	origin := r.Header.Get("Origin")
	switch {
	case s.Owner == nil || s.Pairings.Path == "":
		http.Error(w, "Users cannot be identified here: use the token.", http.StatusForbidden)
	case r.Method == http.MethodGet && origin == "" && opened(r.Header):
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		code := s.codes.fresh(time.Now())
		fmt.Fprintf(w, pairHTML, code[:4], code[4:])
	case r.Method == http.MethodGet:
		http.Error(w, "Open this page by its own address.", http.StatusForbidden)
	case r.Method == http.MethodOptions && isExtension(origin):
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Methods", "POST")
		h.Set("Access-Control-Allow-Headers", "Content-Type")
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && isExtension(origin):
		h.Set("Access-Control-Allow-Origin", origin)
		var said struct {
			Code string `json:"code"`
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		if err != nil || json.Unmarshal(text, &said) != nil || !s.codes.use(said.Code, time.Now()) {
			http.Error(w, "The code is wrong, or older than five minutes: get a new one.", http.StatusForbidden)
			return
		}
		token, err := s.Pairings.Add(r.Context(), origin, time.Now())
		if err != nil {
			s.Log.Error("cannot pair an extension", "error", err)
			http.Error(w, "The pairing could not be saved; see the log.", http.StatusInternalServerError)
			return
		}
		s.Log.Info("paired an extension", "origin", origin)
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(encode(map[string]string{"token": token})) // the client is gone
	default:
		http.Error(w, "Extensions must send their code with POST.", http.StatusForbidden)
	}
}

// opened reports whether a user opened an address in a window (Fetch Metadata). Programs do not send these fields.
func opened(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return site == "" || (site == "none" || site == "same-origin") && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}
