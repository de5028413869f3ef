package contract

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layers are the sizes of the image's layers.
var layers = []int{12 << 20, 2 << 20, 40 << 10}

// tagged is a folder below which the origin gives blobs an ETag.
const tagged = "/tagged"

// image returns the image that is pulled.
func image(t *testing.T) v1.Image {
	t.Helper()
	var all []v1.Layer
	for i, size := range layers {
		all = append(all, static.NewLayer(content(byte(i), size), types.OCIUncompressedLayer))
	}
	img, err := mutate.AppendLayers(empty.Image, all...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// registries serves the image twice: like go-containerregistry's own registry, which supports Range but has no validator,
// and with the ETag that the CNCF's registry gives a blob, its digest.
func registries(t *testing.T) http.Handler {
	t.Helper()
	own := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dir, digest := path.Split(r.URL.Path); strings.HasPrefix(dir, "/v2"+tagged+"/") && strings.HasSuffix(dir, "/blobs/") {
			w.Header().Set("Etag", `"`+digest+`"`)
		}
		own.ServeHTTP(w, r)
	})
	local := httptest.NewServer(handler)
	defer local.Close()
	for _, repository := range []string{"/plain", tagged} {
		ref, err := name.ParseReference(strings.TrimPrefix(local.URL, "http://") + repository + "/image:1")
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image(t)); err != nil {
			t.Fatal(err)
		}
	}
	return handler
}

func TestContainerRegistry(t *testing.T) {
	play(t, registries, int64(layers[0]/10), func(t *testing.T, tr *recorder) {
		pull(t, tr, tagged)
		tr.blob(t, 0).divided(t, layers[0])
		tr.blob(t, 1).divided(t, layers[1])
		tr.blob(t, 2).undivided(t, layers[2], "no_ranges") // the registry refuses a range beyond the end of a small blob
		tr.forget()
		pull(t, tr, "/plain")
		for i, size := range layers {
			tr.blob(t, i).undivided(t, size, "no_validator")
		}
	})
}

// pull pulls the image by its tag and checks the bytes of every layer. The library verifies the digests of the manifest
// and of the layers.
func pull(t *testing.T, tr *recorder, repository string) {
	t.Helper()
	ref, err := name.ParseReference(originAddr + repository + "/image:1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref, remote.WithTransport(tr), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := image(t).Digest()
	if got, err := img.Digest(); err != nil || got != want {
		t.Fatalf("pulled %v, %v, want %v", got, err, want)
	}
	all, err := img.Layers()
	if err != nil || len(all) != len(layers) {
		t.Fatalf("%d layers, %v", len(all), err)
	}
	for i, l := range all {
		r, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil || !bytes.Equal(b, content(byte(i), layers[i])) {
			t.Errorf("layer %d: %d bytes, %v", i, len(b), err)
		}
	}
}

// blob returns the one GET of a layer.
func (r *recorder) blob(t *testing.T, layer int) request {
	t.Helper()
	all, err := image(t).Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := all[layer].Digest()
	if err != nil {
		t.Fatal(err)
	}
	got := r.find(digest.String())
	if len(got) != 1 {
		t.Fatalf("%d requests for layer %d", len(got), layer)
	}
	return got[0]
}
