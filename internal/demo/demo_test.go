package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// overSecond is a Proxy that uses only the second link, so that the death of the first does not affect it.
func overSecond(change func(*http.Response) error) Proxy {
	return func(_ context.Context, links []link.Link) (string, func(), error) {
		t := &http.Transport{
			DisableCompression: true,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, _, err := links[1].Dial(ctx, network, addr)
				return c, err
			},
		}
		s := httptest.NewServer(&httputil.ReverseProxy{
			Transport: t, ModifyResponse: change, Rewrite: func(*httputil.ProxyRequest) {},
		})
		return s.URL, func() {
			s.Close()
			t.CloseIdleConnections()
		}, nil
	}
}

func small(p Proxy) show {
	return show{
		size:  1_000_000,
		wifi:  shape{name: "wifi", rate: 40e6, delay: time.Millisecond},
		lte:   shape{name: "lte", rate: 25e6, delay: 2 * time.Millisecond},
		start: p,
	}
}

func TestShow(t *testing.T) {
	var out strings.Builder
	if err := small(overSecond(nil)).run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`wifi +320 Mbit/s, round trip 2ms`,
		`4/4  both, wifi dies half-way +\d+\.\d\d s`,
		`wifi alone, without Tributary .*  1\.0 +0\.0 +matches`,
		`lte alone, without Tributary .*  0\.0 +1\.0 +matches`,
		`both, through Tributary .*  0\.0 +1\.0 +matches`,
		`the download continued over lte: every byte right, longest pause`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + out.String())
	}
}

func TestShowTellsWrongBytes(t *testing.T) {
	var out strings.Builder
	err := small(overSecond(func(r *http.Response) error {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader("!"), io.LimitReader(r.Body, r.ContentLength-1)), r.Body}
		return nil
	})).run(t.Context(), &out)
	if err == nil || !strings.Contains(err.Error(), "differ from the origin's") || !strings.Contains(out.String(), "DIFFERS") {
		t.Errorf("error %v\n%s", err, &out)
	}
}

func TestShowTellsAFailure(t *testing.T) {
	broken := errors.New("no proxy today")
	fails := func(context.Context, []link.Link) (string, func(), error) { return "", nil, broken }
	if err := small(fails).run(t.Context(), io.Discard); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	refuses := overSecond(func(r *http.Response) error {
		r.StatusCode, r.Status = 403, "403 Forbidden"
		return nil
	})
	if err := small(refuses).run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "answer 403") {
		t.Errorf("error %v", err)
	}
}

func TestShowStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := small(overSecond(nil)).run(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
