package engine

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/transfer"
)

// TestMailbox: prepended events come before those posted meanwhile, and nothing comes twice.
func TestMailbox(t *testing.T) {
	m := mailbox{posted: make(chan struct{}, 1)}
	m.post(transfer.Event{Link: 2})
	m.prepend([]transfer.Event{{Link: 0}, {Link: 1}})
	m.post(transfer.Event{Link: 3})
	<-m.posted
	mail := m.take()
	if len(mail) != 4 {
		t.Fatalf("%d events", len(mail))
	}
	for i, e := range mail {
		if e.Link != int8(i) {
			t.Errorf("event %d is of link %d", i, e.Link)
		}
	}
	if mail := m.take(); len(mail) > 0 || len(m.posted) > 0 {
		t.Errorf("%d events, and %d signals, are left", len(mail), len(m.posted))
	}
}
