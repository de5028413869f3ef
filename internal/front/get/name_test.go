package get

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

func TestName(t *testing.T) {
	for url, want := range map[string]string{
		"http://h/a/big.iso":           "big.iso",
		"http://h/a/big.iso?x=/y#z":    "big.iso",
		"http://h":                     "index.html",
		"http://h/":                    "index.html",
		"http://h/a/":                  "index.html",
		"http://h?x":                   "index.html",
		"http://h/a%20b":               "a b",
		"http://h/%2e%2e":              "index.html",
		"http://h/..%2f..%2fetc":       "_._.._etc",
		"http://h/..%5cetc":            "_._etc",
		"http://h/.bashrc":             "_bashrc",
		"http://h/-rf":                 "_rf",
		"http://h/a%00b%0ac%1b[2J":     "a_b_c_[2J",
		"http://h/%ff%fe":              "__",
		"http://h/gr%C3%BC%C3%9Fe.txt": "grüße.txt",
		"http://h/a%E2%80%AEb":         "a_b", // right-to-left override
		"http://h/%20":                 "index.html",
		"http://h/debian.iso.part":     "debian.iso_part",
		"http://h/a.PaRt":              "a_PaRt",
		"http://h/a.part.%20.":         "a_part",
		"http://h/.part":               "_part",
		"http://h/...":                 "index.html",
	} {
		l, err := parseLocation(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := l.name(); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	t.Run("R219 never a partial file's name", func(t *testing.T) {
		for name, want := range map[string]string{
			"debian.iso.part": "debian.iso_part", "a.PaRt": "a_PaRt", "a.part. .": "a_part", ".part": "_part", "a.part.part": "a.part_part",
			strings.Repeat("x", 300) + ".part": strings.Repeat("x", maxName-5) + "_part",
		} {
			if got := SafeName(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	})
	long := SafeName(strings.Repeat("ü", 200) + ".tar.gz")
	if len(long) > maxName || !strings.HasSuffix(long, ".gz") || !utf8.ValidString(long) {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

func TestServerName(t *testing.T) {
	at, err := parseLocation("http://h/url.bin")
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		`attachment; filename="a b.iso"`:                    "a b.iso",
		`attachment; filename*=UTF-8''gr%C3%BC%C3%9Fe.txt`:  "grüße.txt",
		`attachment; filename="../../etc/passwd"`:           "passwd",
		`attachment; filename="C:\\temp\\x.exe"`:            "x.exe",
		`attachment; filename=".profile"`:                   "_profile",
		`attachment; filename*=UTF-8''a%0Ab%2F..%2F.ssh%2F`: "url.bin",
		`attachment; filename=""`:                           "url.bin",
		`attachment`:                                        "url.bin",
		`attachment; filename=a; filename=b`:                "url.bin",
		`attachment; filename=a b; filename=c d`:            "url.bin",
		`attachment; filename=my file (1).zip`:              "my file (1).zip",
		`attachment; FileName = my file.zip ; size=5`:       "my file.zip",
		`filename=x.zip`:                                    "x.zip",
		`attachment; filename="%E6%B5%8B.zip"`:              "\u6d4b.zip",
		`attachment; filename=%E6%B5%8B.zip`:                "\u6d4b.zip",
		`attachment; filename="100% pure.zip"`:              "100% pure.zip",
		`attachment; filename="caf%E9.zip"`:                 "caf%E9.zip",
		`attachment; filename="%2e%2e%2fetc%2fpasswd"`:      "passwd",
		`attachment; filename*=UTF-8''100%2525.zip`:         "100%25.zip",
		`attachment; filename="a-"b,-c"-d.zip"`:             `a-"b,-c"-d.zip`,
		`attachment; filename="a "b" c.zip"; size=5`:        `a "b" c.zip`,
		`attachment; filename="a b.zip`:                     "a b.zip",
		"attachment; filename=\"caf\xe9.zip\"":              "caf\u00e9.zip",
		"attachment; filename=caf\xe9 1.zip":                "caf\u00e9 1.zip",
		"attachment; filename=\"caf\xc3\xa9.zip\"":          "caf\u00e9.zip",
		`attachment; filename=../my .part`:                  "my _part",
		`attachment; filename="debian.iso.part"`:            "debian.iso_part",
		`attachment; filename="debian.iso%2Epart"`:          "debian.iso_part",
		``: "url.bin",
	} {
		if got := serverName(http.Header{"Content-Disposition": {field}}, at); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
	t.Run("a download", func(t *testing.T) {
		s := newMortal(t, origintest.Set("Content-Disposition", `attachment; filename="theirs"`))
		s.well.Store(true)
		r := newRig(t, toNodes(s.Server), nil)
		r.write("object", []byte("mine"))
		if _, err := r.get(t.Context(), s.URL(), Options{ServerName: true}); err != nil {
			t.Fatal(err)
		}
		r.holds("object", "theirs")
		_, err := r.get(t.Context(), s.URL(), Options{ServerName: true})
		r.fails(err, File, "theirs exists")
	})
	t.Run("a resume", func(t *testing.T) {
		s := newMortal(t)
		r := newRig(t, toNodes(s.Server), nil)
		kept := r.cut(s, Options{ServerName: true})
		res, err := r.get(t.Context(), s.URL(), Options{ServerName: true, Resume: true})
		if err != nil || res.Resumed != kept {
			t.Fatalf("%+v, %v", res, err)
		}
		r.isObject("object", s.Object())
	})
}

func TestLocation(t *testing.T) {
	for url, want := range map[string]string{
		"http://Example.com":            "http example.com /",
		"https://h:8443/a?b":            "https h:8443 /a?b",
		"http://h:080/":                 "http h:80 /",
		"http://h:/":                    "http h /",
		"http://[2001:db8::1]/":         "http [2001:db8::1] /",
		"http://[2001:db8::1]:81/":      "http [2001:db8::1]:81 /",
		"http://u:p@h/a b?c d=ü#f":      "http h /a%20b?c%20d=%C3%BC",
		"http://h/a%2Fb//c/../d?q=%zz?": "http h /a%2Fb//c/../d?q=%zz?",
		"http://h//a":                   "http h //a",
		"http://bücher.example/":        "http xn--bcher-kva.example /",
		"http://under_score.h/?":        "http under_score.h /?",
	} {
		l, err := parseLocation(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		u := l.request()
		if got := u.Scheme + " " + u.Host + " " + u.RequestURI(); got != want || u.User != nil || u.Fragment != "" {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	for _, url := range []string{
		"", "file", "example.com/file", "ftp://h/", "http://", "http:///x", "http://h:0/", "http://h:99999/", "http://h:x/", "http://a b/",
		"http://h\r\nX: y/", "mailto:a@b", "http://h%00/",
	} {
		if l, err := parseLocation(url); err == nil {
			t.Errorf("%q: %+v", url, l)
		}
	}
	_, err := parseLocation("http://user:secret@ho st/")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestFields(t *testing.T) {
	for _, line := range []string{
		"Range: bytes=0-", "if-range: x", "Host: h", "Content-Length: 1", "Connection: close", "X", ": x", "a b: c", "X: a\r\nY: b",
		"Authorization: Digest x", "Authorization: NTLM x",
	} {
		if h, err := Fields([]string{line}, "a"); err == nil {
			t.Errorf("%q: %v", line, h)
		}
	}
	h, err := Fields([]string{"authorization: Custom key", "User-Agent:", "X-A:b:c"}, "a")
	if err != nil || h.Get("Authorization") != "Custom key" || h["User-Agent"] != nil || h.Get("X-A") != "b:c" {
		t.Errorf("%v, %v", h, err)
	}
}

func TestChecksum(t *testing.T) {
	for _, s := range []string{"", "sha256", "sha256:", "sha256:12", "md5:d41d8cd98f00b204e9800998ecf8427e", "sha256:" + strings.Repeat("x", 64)} {
		if c, err := ParseChecksum(s); err == nil {
			t.Errorf("%q: %v", s, c)
		}
	}
	// The hash of no bytes (FIPS 180-4).
	const none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	c := checksum(t, "SHA256:"+strings.ToUpper(none))
	if sum, err := c.verify(c.start()); err != nil || sum != "sha256:"+none {
		t.Errorf("%q, %v", sum, err)
	}
	o := origintest.Object{Size: mid}
	s := origintest.New(t, o)
	r := newRig(t, toNodes(s), nil)
	_, err := r.get(t.Context(), s.URL(), Options{Checksum: c})
	r.fails(err, Mismatch, none, "object.part", "--force")
	r.holds("object.part")
	_, err = r.get(t.Context(), s.URL(), Options{Checksum: c, Resume: true})
	r.fails(err, File, "not known")
}
