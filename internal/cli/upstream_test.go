package cli

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
)

func TestUpstreamProxy(t *testing.T) {
	// in runs a command with http_proxy set.
	in := func(proxy string, args ...string) (served, fetched bool, code int, said string) {
		var errs bytes.Buffer
		a := &app{
			version: "v9", rawStdout: new(bytes.Buffer), rawStderr: &errs, proxy: noProxy,
			getenv: func(name string) string { return map[string]string{"http_proxy": proxy}[name] },
			serve: func(context.Context, config.Config, *slog.Logger, daemon.Reloads) error {
				served = true
				return nil
			},
			fetch: func(
				context.Context, config.Config, *x509.CertPool, *slog.Logger, func(context.Context, http.RoundTripper) error,
			) error {
				fetched = true
				return errors.New("not fetched in this test")
			},
		}
		code = a.run(t.Context(), args)
		return served, fetched, code, errs.String()
	}
	t.Run("R17 serve starts where the environment names Tributary itself", func(t *testing.T) {
		if served, _, code, said := in("http://127.0.0.1:8080", "serve"); !served || code != exitOK {
			t.Errorf("code %d, %s", code, said)
		}
		if served, _, code, said := in("localhost:3128/", "serve", "--listen", "127.0.0.1:3128"); !served || code != exitOK {
			t.Errorf("code %d, %s", code, said)
		}
	})
	t.Run("R17 serve refuses another proxy in the environment", func(t *testing.T) {
		served, _, code, said := in("http://proxy.corp:3128", "serve")
		if served || code != exitUsage || !strings.Contains(said, "env -u http_proxy tributary serve") {
			t.Errorf("code %d, %s", code, said)
		}
	})
	t.Run("get warns of one", func(t *testing.T) {
		for _, c := range []struct {
			proxy string
			quiet string
			want  bool
		}{{"http://proxy.corp:3128", "--quiet=false", true}, {"http://proxy.corp:3128", "--quiet", false}, {"localhost:8080", "--quiet=false", false}} {
			_, fetched, _, said := in(c.proxy, "get", c.quiet, "http://example.com/x")
			if !fetched || strings.Contains(said, "warning: http_proxy=") != c.want {
				t.Errorf("%v: fetched %v, %s", c, fetched, said)
			}
		}
	})
}
