package engine

import (
	"net/http"
	"reflect"
	"testing"
)

func TestR110WholeMakesTheAnswerWithoutARange(t *testing.T) {
	for name, tt := range map[string]struct{ from, want http.Header }{
		"nginx": {
			http.Header{"Content-Range": {"bytes 0-9/10"}, "Etag": {`"a"`}},
			http.Header{"Accept-Ranges": {"bytes"}, "Etag": {`"a"`}},
		},
		"an origin that repeats Accept-Ranges": {
			http.Header{"Content-Range": {"bytes 0-9/10"}, "Accept-Ranges": {"bytes, seconds"}},
			http.Header{"Accept-Ranges": {"bytes, seconds"}},
		},
		"digests of the part": {
			http.Header{"Content-Md5": {"x"}, "Content-Digest": {"y"}, "Repr-Digest": {"z"}},
			http.Header{"Accept-Ranges": {"bytes"}, "Repr-Digest": {"z"}},
		},
	} {
		out := &Response{Status: http.StatusPartialContent, Header: tt.from}
		if whole(out); out.Status != http.StatusOK || !reflect.DeepEqual(out.Header, tt.want) {
			t.Errorf("%s: %d %v, want 200 %v", name, out.Status, out.Header, tt.want)
		}
	}
}
