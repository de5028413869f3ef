package relay

import (
	"strings"
	"testing"
)

// TestKeyIsNoFlag: the identity of a new key is a valid argument of a command.
func TestKeyIsNoFlag(t *testing.T) {
	for range 1000 {
		k, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(k.ID()), "-") {
			t.Fatalf("%s would be a flag of relay remove", k.ID())
		}
	}
}
