package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"golang.org/x/net/html"
)

// simple serves an index of Python packages (PEP 503, PEP 691). Its pages link to files that are often on another host;
// these links are rewritten to lead through the gateway. Everything else passes unchanged.
func (x *exchange) simple(t target) *failure {
	h := requestHeader(x.r.Header)
	h.Set("Accept-Encoding", "identity") // the page is rewritten
	for _, name := range []string{"If-None-Match", "If-Modified-Since"} {
		delete(h, name) // an answer without a page would not show the hosts that pages lead to
	}
	a, f := x.follow(t, h, nil)
	if f != nil {
		return f
	}
	rewrite := rewriterOf(a.Header.Get("Content-Type"))
	if rewrite == nil || a.StatusCode != http.StatusOK {
		x.reply(a)
		return nil
	}
	defer a.Body.Close()
	a.rewritten()
	if x.r.Method == http.MethodHead {
		x.reply(a)
		return nil
	}
	page, f := x.page(a, rewrite, links{hosts: x.g.Hosts, prefix: "/simple/" + t.host + "/", index: t.host, page: a.at})
	if f != nil {
		return f
	}
	a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(page)), int64(len(page))
	x.reply(a)
	return nil
}

// rewriterOf returns the function that rewrites pages of a content type, nil if it is not that of an index page.
func rewriterOf(contentType string) func(*links, []byte) ([]byte, error) {
	switch kind, _, _ := mime.ParseMediaType(contentType); kind {
	case "text/html", "application/vnd.pypi.simple.v1+html":
		return (*links).html
	case "application/vnd.pypi.simple.v1+json":
		return (*links).json
	}
	return nil
}

// html rewrites the links of a page; everything else keeps its bytes.
func (l *links) html(page []byte) ([]byte, error) {
	var out bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				return nil, z.Err()
			}
			out.Write(z.Raw()) // the beginning of a tag without its end
			return out.Bytes(), nil
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := bytes.Clone(z.Raw())
			token := z.Token()
			changed := false
			for i, attr := range token.Attr {
				if attr.Key != "href" {
					continue
				}
				switch token.Data {
				case "base":
					if base, err := url.Parse("https://" + l.page.host + l.page.path); err == nil {
						if to, err := base.Parse(attr.Val); err == nil {
							if t, err := l.page.resolve(to.String()); err == nil {
								l.page = t
							}
						}
					}
					token.Attr[i].Val, changed = "", true // links are made absolute
				case "a":
					if val := l.through(attr.Val); val != attr.Val {
						token.Attr[i].Val, changed = val, true
					}
				}
			}
			if changed {
				out.WriteString(token.String())
			} else {
				out.Write(raw)
			}
		default:
			out.Write(z.Raw())
		}
	}
}

// json rewrites the links of a project's files (PEP 691); everything else keeps its values.
func (l *links) json(page []byte) ([]byte, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(page, &whole); err != nil {
		return nil, err
	}
	list, ok := whole["files"]
	if !ok {
		return page, nil // the list of projects has no links
	}
	var files []map[string]json.RawMessage
	if err := json.Unmarshal(list, &files); err != nil {
		return nil, err
	}
	for _, file := range files {
		var link string
		if err := json.Unmarshal(file["url"], &link); err != nil {
			return nil, fmt.Errorf("url of a file: %w", err)
		}
		var err error
		if file["url"], err = json.Marshal(l.through(link)); err != nil {
			return nil, err
		}
	}
	var err error
	if whole["files"], err = json.Marshal(files); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}
