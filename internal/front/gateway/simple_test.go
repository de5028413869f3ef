package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// page returns a server that answers with a page of a type.
func page(contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Etag", `"v1"`)
		_, _ = w.Write([]byte(text))
	}
}

const indexPage = `<!DOCTYPE html><html><head><title>Links</title><meta name="pypi:repository-version" content="1.0"></head>
<body><!-- <a href="https://files.example/comment"> --><h1>Links</h1>
<a href="https://files.example/a-1.whl#sha256=0123" data-requires-python="&gt;=3.8" data-core-metadata="sha256=45">a-1.whl</a><br/>
<a href="/root/a-2.whl#sha256=0123&amp;x=1">a-2</a> <A HREF='../../a-3.whl'>a-3</A> <a href="a-4.whl">a-4</a> <a name="x">x</a>
<a href="//files.example/a-5.whl">a-5</a> <a href="https://files.example:8443/a-6.whl">other port</a>
<a href="http://files.example/a-7.whl">http</a> <a href="https://192.168.1.1/a-8.whl">inward</a> <a href="https://router.lan/x">inward</a>
<a href="#top">top</a> <a href="mailto:a@files.example">mail</a></body></html>
`

const rewrittenPage = `<!DOCTYPE html><html><head><title>Links</title><meta name="pypi:repository-version" content="1.0"></head>
<body><!-- <a href="https://files.example/comment"> --><h1>Links</h1>
<a href="/https/files.example/a-1.whl#sha256=0123" data-requires-python="&gt;=3.8" data-core-metadata="sha256=45">a-1.whl</a><br/>
<a href="/simple/index.example/root/a-2.whl#sha256=0123&amp;x=1">a-2</a> <a href="/simple/index.example/a-3.whl">a-3</A> <a href="/simple/index.example/simple/a/a-4.whl">a-4</a> <a name="x">x</a>
<a href="/https/files.example/a-5.whl">a-5</a> <a href="https://files.example:8443/a-6.whl">other port</a>
<a href="http://files.example/a-7.whl">http</a> <a href="https://192.168.1.1/a-8.whl">inward</a> <a href="https://router.lan/x">inward</a>
<a href="#top">top</a> <a href="mailto:a@files.example">mail</a></body></html>
`

func TestIndexPages(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{
		"files.example:443": says("a wheel"),
		"index.example:443": func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/simple/a/":
				page("text/html; charset=utf-8", indexPage)(w, r)
			case "/moved/a/":
				sends("/simple/a/")(w, r)
			case "/based/a/":
				page("application/vnd.pypi.simple.v1+html", `<base href="/other/"><a href="x.whl">x</a>`)(w, r)
			case "/large/":
				page("text/html", strings.Repeat("<a href=x>x</a>", maxIndex/15+1))(w, r)
			case "/coded/":
				w.Header().Set("Content-Encoding", "gzip")
				page("text/html", "x")(w, r)
			default:
				page("application/octet-stream", "<a href='https://files.example/x'>")(w, r)
			}
		},
	}}
	addr := serve(t, w, "index.example")
	if resp, _ := ask(t, addr, http.MethodGet, "/https/files.example/a-1.whl"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("before any page named the host: %s", resp.Status)
	}
	for path, want := range map[string]string{
		"/simple/index.example/simple/a/": rewrittenPage,
		"/simple/index.example/moved/a/":  rewrittenPage,
		"/simple/index.example/based/a/":  `<base href=""><a href="/simple/index.example/other/x.whl">x</a>`,
		"/simple/index.example/a.whl":     "<a href='https://files.example/x'>", // a file, whatever its content
		"/https/index.example/simple/a/":  indexPage,
		"/https/files.example/a-1.whl":    "a wheel",
	} {
		if path == "/https/files.example/a-1.whl" {
			ask(t, addr, http.MethodGet, "/simple/index.example/simple/a/")
		}
		resp, body := ask(t, addr, http.MethodGet, path, `If-None-Match: "v1"`)
		if resp.StatusCode != http.StatusOK || body != want {
			t.Errorf("%s: %s\n%s\nwant\n%s", path, resp.Status, body, want)
		}
		if rewritten := strings.HasPrefix(path, "/simple/") && !strings.HasSuffix(path, "whl"); rewritten == (resp.Header.Get("Etag") != "") && strings.Contains(path, "index") {
			t.Errorf("%s: Etag %q", path, resp.Header.Get("Etag"))
		}
	}
	for _, path := range []string{"/simple/index.example/large/", "/simple/index.example/coded/"} {
		if resp, _ := ask(t, addr, http.MethodGet, path); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if resp, _ := ask(t, addr, http.MethodHead, "/simple/index.example/simple/a/"); resp.StatusCode != http.StatusOK || resp.Header.Get("Etag") != "" {
		t.Errorf("HEAD: %s, %v", resp.Status, resp.Header)
	}
	for _, host := range []string{"192.168.1.1", "router.lan", "files.example:8443"} {
		if resp, _ := ask(t, addr, http.MethodGet, "/https/"+host+"/a-8.whl"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("a page named %s: %s", host, resp.Status)
		}
	}
}

func TestIndexPagesInJSON(t *testing.T) {
	const kind = "application/vnd.pypi.simple.v1+json"
	const text = `{"meta":{"api-version":"1.1","_x":12345678901234567890},"name":"a","versions":["1"],"files":[
		{"filename":"a-1.whl","url":"https://files.example/a-1.whl","hashes":{"sha256":"01"},"size":123456789012345678,"core-metadata":{"sha256":"2"}},
		{"filename":"a-2.whl","url":"../../a-2.whl","hashes":{}}, {"url":"http://files.example/a-3.whl"}]}`
	w := &world{servers: map[string]http.HandlerFunc{
		"index.example:443": func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/simple/a/":
				page(kind, text)(w, r)
			case "/simple/":
				page(kind, `{"projects":[{"name":"a"}]}`)(w, r)
			default:
				page(kind, `{"files":[{"url":5}]}`)(w, r)
			}
		},
	}}
	addr := serve(t, w, "index.example")
	resp, body := ask(t, addr, http.MethodGet, "/simple/index.example/simple/a/")
	var got, want any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(resp.Status, err)
	}
	rewritten := strings.NewReplacer(`"https://files.example/a-1.whl"`, `"/https/files.example/a-1.whl"`,
		`"../../a-2.whl"`, `"/simple/index.example/a-2.whl"`).Replace(text)
	_ = json.Unmarshal([]byte(rewritten), &want)
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) || !strings.Contains(body, "123456789012345678,") || !strings.Contains(body, "12345678901234567890") {
		t.Errorf("%s\nwant\n%s", body, rewritten)
	}
	if _, body = ask(t, addr, http.MethodGet, "/simple/index.example/simple/"); body != `{"projects":[{"name":"a"}]}` {
		t.Error(body)
	}
	if resp, _ = ask(t, addr, http.MethodGet, "/simple/index.example/odd/"); resp.StatusCode != http.StatusBadGateway {
		t.Error(resp.Status)
	}
}

func FuzzIndexPages(f *testing.F) {
	f.Add([]byte(indexPage))
	f.Add([]byte("<A"))
	f.Add([]byte(`{"files":[{"url":"https://files.example/a"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := NewHosts([]string{"index.example"}, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, rewrite := range []func(*links, []byte) ([]byte, error){(*links).html, (*links).json} {
			l := links{hosts: h, prefix: "/simple/index.example/", index: "index.example", page: target{"index.example", "/simple/a/"}}
			out, err := rewrite(&l, in)
			if linked := strings.Contains(strings.ToLower(string(in)), "href"); i == 0 && !linked && (err != nil || string(out) != string(in)) {
				t.Errorf("%q became %q, %v", in, out, err)
			}
			for _, host := range h.linked {
				if !onInternet(host) {
					t.Errorf("%q lets clients ask %s", in, host)
				}
			}
		}
	})
}
