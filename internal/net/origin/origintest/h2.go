package origintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"time"
)

// SecureHost is the name pattern in the certificate of a Secure server: any label may replace the star.
const SecureHost = "*.secure.test"

// Secure is a Server's second face: the same answers over TLS and HTTP/2, on two nodes of its own. It has no faults of
// framing, slow answers, raw answers or interim answers, because net/http writes its answers; one that stalls is reset
// after that.
type Secure struct {
	Roots *x509.CertPool // proves SecureHost
	addrs []string
}

// Addr returns the "host:port" of a node, 0 or 1.
func (s *Secure) Addr(node int) string { return s.addrs[node] }

// Secure starts the second face; it ends with the Server.
func (s *Server) Secure() *Secure {
	s.t.Helper()
	cert, roots := s.certificate()
	out := &Secure{Roots: roots}
	for node := range s.sent {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatalf("origintest: %v", err)
		}
		srv := &http.Server{
			Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answerSecure(node, w, r) }),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
			ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		}
		s.running.Go(func() { _ = srv.ServeTLS(l, "", "") }) // ends with Close
		s.t.Cleanup(func() { srv.Close() })
		out.addrs = append(out.addrs, l.Addr().String())
	}
	return out
}

// certificate creates a certificate for SecureHost, and a pool that verifies it.
func (s *Server) certificate() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{SecureHost},
		IsCA:                  true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}

func (s *Server) answerSecure(node int, w http.ResponseWriter, r *http.Request) {
	q := &Request{
		Node:   node,
		At:     time.Now(),
		Method: r.Method,
		Target: r.RequestURI,
		Proto:  r.Proto,
		Header: r.Header,
		Range:  r.Header.Get("Range"),
	}
	s.record(q)
	x := s.exchange(q)
	p := x.answer()
	h := w.Header()
	maps.Copy(h, p.header)
	h.Del("Connection")
	h.Del("Transfer-Encoding")
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // keeps net/http from guessing one
	}
	w.WriteHeader(p.status)
	if p.length == 0 {
		return
	}
	body := p.literal
	if body == nil {
		body = p.object.Bytes(p.from, p.from+p.length)
	}
	body = body[:min(p.length, int64(len(body)))]
	if x.Reset {
		body = body[:min(x.ResetAt, int64(len(body)))]
	}
	if x.Stall {
		body = body[:min(x.StallAt, int64(len(body)))]
	}
	s.sent[node].Add(int64(len(body)))
	_, err := w.Write(body)
	if x.Stall {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-x.Until:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	if err != nil || x.Reset || x.Short > 0 {
		panic(http.ErrAbortHandler)
	}
}
