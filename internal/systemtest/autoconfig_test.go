package systemtest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestAutoConfigOfTheProxyPort: a phone has no admin port, and its Wi-Fi settings accept a script that lets apps bypass a proxy
// that does not run.
func TestAutoConfigOfTheProxyPort(t *testing.T) {
	_, proxy := startGuarded(t, settings())
	for _, row := range []struct {
		name, request string
		status        int
		says          string
	}{
		{"R73 script", "GET /proxy.pac HTTP/1.1\r\nHost: " + proxy.Host, 200, `return "PROXY ` + proxy.Host + `; DIRECT";`},
		{"R180 rebound name", "GET /proxy.pac HTTP/1.1\r\nHost: evil.example", 403, "Host"},
		{"R181 another method", "POST /proxy.pac HTTP/1.1\r\nHost: " + proxy.Host + "\r\nContent-Length: 0", 405, "only GET and HEAD"},
		{"R4 another page", "GET /proxy.pac.old HTTP/1.1\r\nHost: " + proxy.Host, 400, "not a web server"},
		{"R4 metrics", "GET /metrics HTTP/1.1\r\nHost: " + proxy.Host, 400, "not a web server"},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, _, body := ask(t, proxy, row.request+"\r\n\r\n")
			if status != row.status || !strings.Contains(body, row.says) {
				t.Errorf("%d, %s", status, body)
			}
		})
	}
	t.Run("R188 content that is a request", func(t *testing.T) {
		c, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		inner := "GET /proxy.pac HTTP/1.1\r\nHost: " + proxy.Host + "\r\n\r\n"
		fmt.Fprintf(c, "POST /proxy.pac HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", proxy.Host, len(inner), inner)
		_ = c.SetReadDeadline(time.Now().Add(limit))
		said, err := io.ReadAll(c)
		if err != nil || strings.Count(string(said), "HTTP/1.1 ") != 1 {
			t.Errorf("%v, %s", err, said)
		}
	})
}
