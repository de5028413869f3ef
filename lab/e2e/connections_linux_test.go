package e2e

import (
	"io"
	"testing"
)

// TestFullLinkIsShared downloads beside another program that fills one of the two links without loss, where more
// connections would only gain a larger share of that link. The log shows how many there were.
func TestFullLinkIsShared(t *testing.T) {
	t.Parallel()
	sc := equal()
	sc.Congestion = "cubic"
	r := start(t, sc)
	large, o := r.object(100_000_000), r.object(16_000_000)
	other := r.lab.Client(r.ctx, "curl", "-sS", "--interface", "wifi", large.URL)
	body, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, body, 3e6); err != nil { // its slow start is over
		t.Fatal(err)
	}
	rest := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, body)
		_ = other.Wait() // it is killed
		rest <- n
	}()
	r.download(o.URL, o) // over IPv4, like the other program
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	theirs := <-rest
	var ours int64
	conns := map[int64]bool{}
	r.until("nginx has logged the requests", func() bool {
		requests, err := r.nginx.Requests()
		if err != nil {
			t.Fatal(err)
		}
		var all int64
		ours = 0
		for _, q := range requests {
			if q.Range == "" {
				continue
			}
			if all += q.BytesSent; q.Client == r.lab.Link("wifi").Addr().String() {
				ours += q.BytesSent
				conns[q.Connection] = true
			}
		}
		return all >= int64(o.Size)
	})
	share := float64(ours) / float64(ours+theirs)
	t.Logf("%.0f %% of the link beside one other connection, over %d connections", 100*share, len(conns))
	// One connection on an idle machine. On a busy machine packets arrive late, which looks like a link with loss, and
	// more connections are tried.
	if share > 0.6 {
		t.Errorf("%.0f %% of the full link, over %d connections", 100*share, len(conns))
	}
}
