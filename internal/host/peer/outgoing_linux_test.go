package peer

import (
	"slices"
	"strings"
	"testing"
)

// TestOutgoing: of a user's sockets, those that are connected to a web server of another machine. The whole is tested by lab/e2e.
func TestOutgoing(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0A00000A:C350 0A7100CB:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 1 1 0
   1: 0A00000A:C351 0A7100CB:0050 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0
   2: 0A00000A:C352 0A7100CB:0016 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0
   3: 0100007F:C353 0100007F:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 4 1 0
   4: 0A00000A:C354 0A7100CB:01BB 01 00000000:00000000 00:00000000 00000000     0        0 5 1 0
   5: 0A00000A:C355 0A7100CB:01BB 06 00000000:00000000 00:00000000 00000000  1000        0 6 1 0
   6: 0A00000A:C356 0A7100CB:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 0 1 0
   7: 00000000000000000000000000000000:C357 B80D0120000000000000000001000000:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 7 1 0
`
	want := []string{"socket:[1]", "socket:[2]", "socket:[7]"}
	if got := outgoing(strings.NewReader(table), 1000); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
