package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// loadsVariable names the variable with the number of page loads.
const loadsVariable = "TRIBUTARY_LOADS"

// shop is an https site that binds a login to the client's address, by a cookie.
type shop struct {
	mu                       sync.Mutex
	homes                    map[string]string // address of each login
	requests, conns, logouts int
}

// ServeHTTP implements http.Handler.
func (s *shop) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	host, _, _ := net.SplitHostPort(q.RemoteAddr)
	s.mu.Lock()
	s.requests++
	login, err := q.Cookie("login")
	if err != nil {
		login = &http.Cookie{Name: "login", Value: strconv.Itoa(len(s.homes)), Path: "/"}
		s.homes[login.Value] = host
		http.SetCookie(w, login)
	}
	if s.homes[login.Value] != host {
		s.logouts++
		s.homes[login.Value] = host // the user logs in again
	}
	closes := s.requests%3 == 0 // many connections
	s.mu.Unlock()
	if closes {
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case strings.HasPrefix(q.URL.Path, "/page"):
		w.Header().Set("Content-Type", "text/html")
		for i := range 12 {
			fmt.Fprintf(w, "<img src=/%d.svg?%s>", i, q.URL.Path)
		}
		_, _ = io.WriteString(w, "<script>onload = () => document.title = 'done'</script>")
	default:
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprintf(w, pageSVG+strings.Repeat("<!-- -->", 1000), 9)
	}
}

// TestLogins loads pages with a browser from a site that binds a login to the client's address. The best link loses
// packets, and another program of the same user is spread over the links to the same site. TRIBUTARY_LOADS sets the
// number of pages, 50 if unset.
func TestLogins(t *testing.T) {
	if !matrix() {
		t.Skip("more than a minute: make matrix runs it")
	}
	need(t, "chromium", "chromium")
	loads := 50
	if text := os.Getenv(loadsVariable); text != "" {
		var err error
		if loads, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", loadsVariable, err)
		}
	}
	sc := quick()
	sc.Links[0].Down.Loss, sc.Links[0].Up.Loss = 0.01, 0.01
	r := start(t, sc)
	s := &shop{homes: map[string]string{}}
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert.Chain, cert.Key)
	if err != nil {
		t.Fatal(err)
	}
	const port = 8445
	var ln net.Listener
	err = r.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp", fmt.Sprintf("%s:%d", netlab.OriginAddr, port))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: testTime,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.mu.Lock()
				s.conns++
				s.mu.Unlock()
			}
		},
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.ServeTLS(ln, "", "") }()
	defer func() { server.Close(); <-served }()

	// A downloader, whose connections come and go.
	r.listen(2230, func(c net.Conn) { _, _ = io.Copy(c, io.LimitReader(endless{}, 200_000)) })
	ctx, cancel := context.WithCancel(r.ctx)
	var downloads sync.WaitGroup
	stop := func() { cancel(); downloads.Wait() }
	defer stop()
	for range 4 {
		downloads.Go(func() {
			for ctx.Err() == nil {
				if c, err := r.tunnel(ctx, fmt.Sprintf("%s:2230", netlab.OriginName), "hf/1.0"); err == nil {
					_, _ = io.Copy(io.Discard, c)
					c.Close()
				}
			}
		})
	}

	b := openBrowser(r, "--proxy-server="+proxyURL, "--ignore-certificate-errors")
	began := time.Now()
	got := r.over(func() {
		for i := range loads {
			b.load(fmt.Sprintf("https://%s:%d/page%d", netlab.OriginName, port, i))
		}
		stop()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d loads in %.0f s: %d requests, %d connections, %d logins, %d logouts; the links carried %v", loads,
		time.Since(began).Seconds(), s.requests, s.conns, len(s.homes), s.logouts, got)
	if s.requests < 13*loads || s.conns < loads || len(s.homes) != 1 {
		t.Errorf("%d requests by %d connections for %d logins: the test shows nothing", s.requests, s.conns, len(s.homes))
	}
	if s.logouts > 0 {
		t.Errorf("%d logouts", s.logouts)
	}
}
