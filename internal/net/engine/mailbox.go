package engine

import (
	"slices"
	"sync"

	"github.com/tributary-http/tributary/internal/core/transfer"
)

// mailbox holds events of fleet and budget for a loop. Posting never blocks.
type mailbox struct {
	posted chan struct{} // capacity 1: there is mail

	mu   sync.Mutex
	mail []transfer.Event
}

// post adds an event.
func (m *mailbox) post(e transfer.Event) {
	m.mu.Lock()
	m.mail = append(m.mail, e)
	m.mu.Unlock()
	m.signal()
}

// prepend adds events before those already posted.
func (m *mailbox) prepend(first []transfer.Event) {
	m.mu.Lock()
	m.mail = slices.Concat(first, m.mail)
	m.mu.Unlock()
	m.signal()
}

// take returns the posted events.
func (m *mailbox) take() []transfer.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	return mail
}

func (m *mailbox) signal() {
	select {
	case m.posted <- struct{}{}:
	default:
	}
}
