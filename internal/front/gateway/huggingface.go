package gateway

import (
	"net/http"
	"strconv"
	"strings"
)

// huggingFace serves a Hugging Face hub to its own client (huggingface_hub). The hub answers HEAD with the properties
// of a file and a redirect to its storage. The client follows the redirect itself, past the gateway, except to Xet
// storage, which has its own protocol. So the gateway answers as a hub that stores its files itself.
func (x *exchange) huggingFace(t target) *failure {
	var stop func(*http.Response, target) bool
	if x.r.Method == http.MethodHead {
		from := t.host
		stop = func(resp *http.Response, to target) bool { return to.host != from && storedSize(resp.Header) >= 0 }
	}
	a, f := x.follow(t, requestHeader(x.r.Header), stop)
	if f != nil {
		return f
	}
	h := a.Header
	for name := range h {
		if strings.HasPrefix(name, "X-Xet-") {
			delete(h, name)
		}
	}
	var links []string
	for _, line := range h["Link"] {
		for link := range strings.SplitSeq(line, ",") { // the hub's URLs have no commas
			if link = strings.TrimSpace(link); !strings.Contains(link, "xet-") {
				links = append(links, strings.Replace(link, "<https://"+t.host+"/",
					"<http://"+x.r.Host+"/hf/"+t.host+"/", 1))
			}
		}
	}
	if delete(h, "Link"); len(links) > 0 {
		h.Set("Link", strings.Join(links, ", "))
	}
	if leads(a.Response) {
		a.StatusCode, a.ContentLength = http.StatusOK, storedSize(h)
		if tag := h.Get("X-Linked-Etag"); tag != "" {
			h.Set("Etag", tag)
		}
		h.Set("Accept-Ranges", "bytes")
		h.Del("Content-Type") // of the redirect
	}
	x.reply(a)
	return nil
}

// storedSize returns the size of the file that a redirect leads to, -1 if the hub does not report it.
func storedSize(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
