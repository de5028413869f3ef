package daemon

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/tributary-http/tributary/internal/origin/origintest"
)

// BenchmarkDownload downloads over two links without a limit on loopback. allocs/MB counts those of the origin and of the
// client, too: it must not grow with the object.
func BenchmarkDownload(b *testing.B) {
	for _, mb := range []int64{8, 64, 256} {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			s := origintest.New(b, origintest.Object{Size: mb * 1e6})
			r := newRig(b, s, settings(), "wifi", "lte")
			c := client(b, r.url)
			download := func() {
				resp, err := c.Do(request(context.Background(), s.URL(), nil))
				if err != nil {
					b.Fatal(err)
				}
				defer resp.Body.Close()
				if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != mb*1e6 {
					b.Fatalf("%d bytes, %v", n, err)
				}
			}
			download()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.SetBytes(mb * 1e6)
			for b.Loop() {
				download()
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N)/float64(mb), "allocs/MB")
		})
	}
}
