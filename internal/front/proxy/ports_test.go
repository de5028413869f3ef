package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tributary-http/tributary/internal/front/admission"
)

func TestTunnelPorts(t *testing.T) {
	p := New(Config{Transport: swallow{}, Session: session(swallow{}), Log: slog.New(slog.DiscardHandler), TunnelPorts: []uint16{443, 8443}})
	for _, tt := range []struct {
		local, port string
		status      int // 502: it was dialed, and swallow has no tunnels
	}{
		{"127.0.0.1", "443", 502},
		{"127.0.0.1", "22", 502},
		{"::1", "22", 502},
		{"127.0.0.1", "25", 403},
		{"192.0.2.1", "443", 502},
		{"192.0.2.1", "0443", 502},
		{"192.0.2.1", "8443", 502},
		{"192.0.2.1", "22", 403},
		{"192.0.2.1", "80", 403},
		{"192.0.2.1", "587", 403},
		{"2001:db8::1", "22", 403},
	} {
		r := httptest.NewRequest(http.MethodConnect, "http://o.test:"+tt.port, nil)
		r.RequestURI = "o.test:" + tt.port
		at := &net.TCPAddr{IP: net.ParseIP(tt.local), Port: 8080}
		w := httptest.NewRecorder()
		ctx := context.WithValue(r.Context(), clientKey{}, &client{local: at.AddrPort(), allowed: true, place: admission.Admitted})
		p.ServeHTTP(w, r.WithContext(ctx))
		if w.Code != tt.status {
			t.Errorf("R139 port %s over %s: %d, want %d", tt.port, tt.local, w.Code, tt.status)
		}
	}
}
