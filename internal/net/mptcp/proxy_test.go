package mptcp

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/things-go/go-socks5"
)

// dialer opens sockets that speak MPTCP.
func dialer(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	d.SetMultipathTCP(true)
	return d.DialContext(ctx, "tcp", addr)
}

// origin starts a server that greets and echoes, and returns its address.
func origin(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.WriteString(c, "hello\n")
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// connecting is a proxy for CONNECT that sends the origin's greeting together with its own response.
func connecting(t *testing.T) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Proxy-Authorization") != "Basic bWU6c2VjcmV0":
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		case r.Host == "long.example:443":
			w.Header().Set("X", strings.Repeat("x", maxReply))
			return
		case r.Host == "silent.example:443":
			<-r.Context().Done()
			return
		}
		c, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer c.Close()
		greeting := make([]byte, len("hello\n"))
		io.ReadFull(c, greeting)
		client, rest, _ := w.(http.Hijacker).Hijack()
		defer client.Close()
		io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"+string(greeting))
		go func() {
			io.Copy(c, rest)
			c.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(client, c)
	}))
	s.EnableHTTP2 = false
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func parsed(t *testing.T, s string) *url.URL {
	u, err := ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// talk has a conversation with the origin, which ends when the client has nothing more to say.
func talk(t *testing.T, c net.Conn) {
	t.Helper()
	io.WriteString(c, "how are you?\n")
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if said, err := io.ReadAll(bufio.NewReaderSize(c, 16)); err != nil || string(said) != "hello\nhow are you?\n" {
		t.Errorf("%q, %v", said, err)
	}
}

func TestConnect(t *testing.T) {
	to, s := origin(t), connecting(t)
	at := strings.TrimPrefix(s.URL, "https://")
	trusted := &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	p := New(parsed(t, "https://me:secret@"+at), dialer, trusted)
	c, err := p.Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Status(); got.Tunnels != 1 || got.Subflows != 1 {
		t.Errorf("%+v", got)
	}
	talk(t, c)
	c.Close()
	if got := p.Status(); got != (Status{}) {
		t.Errorf("%+v", got)
	}
	for _, f := range []struct{ url, to, want string }{
		{"https://" + at, to, "rejects the user"},
		{"https://me:wrong@" + at, to, "rejects the user"},
		{"https://me:secret@" + at, "127.0.0.1:1", "502"},
		{"https://me:secret@" + at, "long.example:443", "response to CONNECT"},
	} {
		if _, err := New(parsed(t, f.url), dialer, trusted).Dial(t.Context(), f.to); err == nil || !strings.Contains(err.Error(), f.want) ||
			strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", f.to, err)
		}
	}
	if _, err := New(parsed(t, "https://me:secret@"+at), dialer, nil).Dial(t.Context(), to); err == nil {
		t.Error("a certificate that nobody vouches for is accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := p.Dial(ctx, "silent.example:443")
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("connected though nobody waits")
	}
}

func TestSOCKS5(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go socks5.NewServer().Serve(l)
	p := New(parsed(t, "socks5://"+l.Addr().String()), dialer, nil)
	c, err := p.Dial(t.Context(), origin(t))
	if err != nil {
		t.Fatal(err)
	}
	talk(t, c)
	c.Close()
	if _, err := p.Dial(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("connected to a closed port")
	}
}

func TestParseURL(t *testing.T) {
	for s, want := range map[string]string{
		"https://me:x@proxy.example":  "proxy.example:443",
		"https://proxy.example:8443/": "proxy.example:8443",
		"socks5://[2001:db8::1]":      "[2001:db8::1]:1080",
		"http://proxy.example":        "", "proxy.example:443": "", "https://": "", "https://proxy.example/path": "", "https://a?b": "",
		"socks5://me:x@proxy.example": "", "https://proxy.example:%zz": "",
	} {
		u, err := ParseURL(s)
		if (err == nil) != (want != "") || err == nil && u.Host != want {
			t.Errorf("%s: %v, %v", s, u, err)
		}
		if err != nil && strings.Contains(err.Error(), "me:x") {
			t.Errorf("%v repeats a password", err)
		}
	}
}
