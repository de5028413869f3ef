package get

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
)

// codes returns all codes.
func codes() map[Code]bool {
	all := map[Code]bool{
		CodeBadURL: true, CodeRedirect: true, CodeDiskFull: true, CodeFileTooLarge: true, CodeFile: true, CodeChecksum: true,
	}
	for _, c := range outcomeCodes {
		all[c] = true
	}
	for status := 400; status < 600; status++ {
		all[statusCode(status)] = true
	}
	return all
}

// TestCodes: the documentation of the protocol lists the codes, and each outcome that a request can end with has one.
func TestCodes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/APPBRIDGE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| code | why a download failed |\n")
	if !found {
		t.Fatal("docs/APPBRIDGE.md has no table of codes")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[Code]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(table, -1) {
		listed[Code(m[1])] = true
	}
	if all := codes(); !maps.Equal(all, listed) {
		t.Errorf("docs/APPBRIDGE.md lists\n%v, and these are used:\n%v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(all)))
	}
	for o := fault.Complete + 1; o <= fault.Unknown; o++ {
		if o.Row().Status != 0 && outcomeCodes[o] == "" {
			t.Errorf("%v has no code", o)
		}
	}
}

// TestCode: the error of a download has a code, and the host and the status of the answer.
func TestCode(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			w.WriteHeader(status)
			return
		}
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		case "/short":
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("12"))
		default:
			_, _ = w.Write(make([]byte, 1<<20))
		}
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	for _, c := range []struct {
		url    string
		code   Code
		status int
		again  bool
	}{
		{s.URL + "/404", CodeNotFound, 404, false},
		{s.URL + "/401", CodeLogin, 401, false},
		{s.URL + "/418", CodeStatus, 418, false},
		{s.URL + "/500", CodeServerError, 500, true},
		{s.URL + "/511", CodeNetworkLogin, 511, false},
		{s.URL + "/503", CodeBusy, 503, true},
		{s.URL + "/loop", CodeRedirect, 0, false},
		{s.URL + "/nowhere", CodeRedirect, 0, false},
		{s.URL + "/short", CodeBrokeOff, 0, true},
		{"http://127.0.0.1:1/", CodeUnreachable, 0, true},
		{"ftp://127.0.0.1/", CodeBadURL, 0, false},
	} {
		e := fill(t, c.url, os.O_RDWR)
		if e == nil || e.Code() != c.code || e.Status != c.status || e.Temporary != c.again {
			t.Errorf("%s: %+v, want code %s, status %d, temporary %v", c.url, e, c.code, c.status, c.again)
		} else if strings.Contains(c.url, host) && e.Host != host && c.code != CodeBrokeOff {
			t.Errorf("%s: host %q", c.url, e.Host)
		}
	}
	if e := fill(t, s.URL+"/file", os.O_RDWR); e != nil {
		t.Errorf("%+v", e)
	}
	// Phones with Android 8 and 9 report the same error for a name that does not exist and for one that cannot be resolved now.
	e, _ := errors.AsType[*Error](unreachable(&net.DNSError{IsNotFound: true}, location{url: url.URL{Host: "example.com"}}))
	if e == nil || e.Code() != CodeUnknownName || !e.Temporary {
		t.Errorf("an unknown name: %+v", e)
	}
	if e := fill(t, s.URL+"/file", os.O_RDONLY); e == nil || e.Code() != CodeFile || e.Temporary {
		t.Errorf("a file that cannot be written: %+v", e)
	}
	for errno, code := range map[syscall.Errno]Code{syscall.ENOSPC: CodeDiskFull, syscall.EFBIG: CodeFileTooLarge, syscall.EIO: CodeFile} {
		if got := (&Error{Kind: File, Err: errno}).Code(); got != code {
			t.Errorf("%v: %s", errno, got)
		}
	}
}

// fill downloads a URL into an open file, and returns its error.
func fill(t *testing.T, url string, flags int) *Error {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	g := &Getter{Transport: http.DefaultTransport}
	_, err = g.Fill(t.Context(), url, &OpenFile{File: file}, NewMeter(), nil)
	var e *Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%s: %v", url, err)
	}
	return e
}
