package systemtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// TestInterimAnswers: an origin announces every part of a transfer with an interim answer.
func TestInterimAnswers(t *testing.T) {
	for _, codings := range []string{"", "gzip"} {
		t.Run("R55 those of later parts are swallowed, codings "+codings, func(t *testing.T) {
			hint := func(x *Exchange) { Interim(fmt.Sprintf("HTTP/1.1 103 Early Hints\r\nLink: <%d>\r\n\r\n", x.N))(x) }
			s := New(t, Object{Size: mid}, hint, RateLimit(paced))
			r := newRig(t, s, settings(), "wifi", "lte")
			var hints []string
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
					hints = append(hints, h.Get("Link"))
					return nil
				},
			})
			h := http.Header{}
			if codings != "" {
				h.Set("Accept-Encoding", codings)
			}
			resp, err := client(t, r.url).Do(request(ctx, s.URL(), h))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			whole(t, seen{status: resp.StatusCode, header: resp.Header, body: body, err: err}, s.Object())
			if len(s.Requests()) < 2 || len(hints) != 1 || hints[0] != "<1>" || resp.Header.Get("Link") != "" {
				t.Errorf("%d requests; interim answers %q, Link of the final one %q", len(s.Requests()), hints,
					resp.Header.Get("Link"))
			}
		})
	}
	t.Run("R55 those of a copy of a slow first request are swallowed", func(t *testing.T) {
		hint := func(x *Exchange) { Interim(fmt.Sprintf("HTTP/1.1 103 Early Hints\r\nLink: <%d>\r\n\r\n", x.N))(x) }
		s := New(t, Object{Size: mid}, hint, UntilRequest(1, SlowStart(3500*time.Millisecond)), RateLimit(paced))
		r := newRig(t, s, settings(), "wifi", "lte")
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				if l := h.Get("Link"); l != "<1>" {
					t.Errorf("interim answer of request %s", l)
				}
				return nil
			},
		})
		resp, err := client(t, r.url).Do(request(ctx, s.URL(), http.Header{}))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		whole(t, seen{status: resp.StatusCode, header: resp.Header, body: body, err: err}, s.Object())
		if len(s.Requests()) < 2 {
			t.Error("there was no copy")
		}
	})
}
