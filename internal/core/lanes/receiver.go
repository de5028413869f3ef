package lanes

import "time"

// maxPieces bounds how many pieces of a stream may wait for earlier bytes.
const maxPieces = 1 << 14

// Receive processes a frame that arrived over a lane; its Data then belongs to the Mux. After an error, which is
// [ErrProtocol], the session must end.
func (m *Mux) Receive(now time.Time, id uint32, f Frame) error {
	l := m.lane(id)
	if l == nil {
		return nil
	}
	if f.Kind.numbered() {
		if l.received == l.answered {
			l.due, m.wanted = now.Add(ackDelay), true
		}
		l.received++
		few := l.owed < ackBytes
		l.owed += headerSize + len(f.Data)
		m.wanted = m.wanted || few && l.owed >= ackBytes
	}
	switch f.Kind {
	case Ping:
		return nil
	case Ack:
		return m.acknowledged(now, f)
	case Suspect:
		if o := m.lane(f.Stream); o != nil {
			o.ping, m.wanted = true, true
		}
		return nil
	}
	s, err := m.known(now, f)
	if s == nil || err != nil {
		return err
	}
	switch f.Kind {
	case Open:
		if s.to == "" {
			s.to = string(f.Data)
			s.credit = max(s.credit, f.Value)
			m.tell(s, Accepted)
		}
	case Opened:
		if !s.opened {
			s.opened = true
			m.tell(s, Connected)
		}
		m.wanted = true
		s.credit = max(s.credit, f.Value)
	case Window:
		s.credit = max(s.credit, f.Value)
		m.wanted = true
	case Reset:
		s.resetHas = f.Value
		m.tell(s, Broken)
		m.forget(s)
	case Fin:
		return m.end(s, f.Value)
	case Data:
		return m.arrive(s, f)
	}
	return nil
}

// known returns the stream of a frame, nil if it has ended.
func (m *Mux) known(now time.Time, f Frame) (*stream, error) {
	if s := m.streams[f.Stream]; s != nil {
		return s, nil
	}
	if m.cfg.Client {
		if f.Stream > m.last {
			return nil, broken("stream %d was never opened", f.Stream)
		}
		return nil, nil
	}
	if _, early := m.early[f.Stream]; early || f.Stream <= m.seen {
		return nil, nil
	}
	if f.Stream-m.seen > maxEarly {
		return nil, broken("stream %d after %d", f.Stream, m.seen)
	}
	if m.resets >= maxResets {
		return nil, broken("opens stream %d and does not acknowledge the end of %d", f.Stream, m.resets)
	}
	m.early[f.Stream] = struct{}{}
	for len(m.early) > 0 {
		if _, ok := m.early[m.seen+1]; !ok {
			break
		}
		m.seen++
		delete(m.early, m.seen)
	}
	if f.Kind == Reset {
		return nil, nil
	}
	s := m.newStream(now, f.Stream)
	s.granted = leastWindow
	if len(m.streams) > m.cfg.MaxStreams || m.cfg.Shared != nil && m.cfg.Shared.Left() < leastWindow {
		m.Reset(now, s.id, CauseLimit)
		return nil, nil
	}
	return s, nil
}

// acknowledged frees the frames that have arrived.
func (m *Mux) acknowledged(now time.Time, f Frame) error {
	l := m.lane(f.Stream)
	if l == nil {
		return nil
	}
	if f.Value > l.acked+uint64(len(l.sent)) {
		return broken("acknowledges %d frames of lane %d, which has sent %d", f.Value, l.id,
			l.acked+uint64(len(l.sent)))
	}
	if f.Value > l.acked && !l.suspect { // a silent lane may have delivered it long ago
		l.progress = now
	}
	for ; l.acked < f.Value; l.acked++ {
		it := l.sent[0]
		l.sent[0] = nil
		l.sent = l.sent[1:]
		if it.acked {
			continue
		}
		it.acked = true
		m.free(it)
		if it.frame.Kind == Reset {
			m.resets--
		}
		if it.stream != nil {
			if it.frame.Kind == Data {
				it.stream.waiting -= len(it.frame.Data)
			}
			it.stream.finHas = it.stream.finHas || it.frame.Kind == Fin
			m.forgetDone(it.stream)
		}
	}
	m.unblock()
	return nil
}

// end takes in the length of a stream.
func (m *Mux) end(s *stream, length uint64) error {
	if s.ended && s.length != length || length < s.have || length > s.granted {
		return broken("stream %d ends at %d", s.id, length)
	}
	for _, p := range s.held {
		if p.end() > length {
			return broken("stream %d ends at %d, before data", s.id, length)
		}
	}
	s.ended, s.length = true, length
	m.tell(s, Readable)
	return nil
}

// arrive takes in data.
func (m *Mux) arrive(s *stream, f Frame) error {
	end := f.Value + uint64(len(f.Data))
	switch {
	case end > s.granted, s.ended && end > s.length:
		return broken("stream %d: data up to %d, allowed are %d", s.id, end, s.granted)
	case len(s.held) >= maxPieces:
		return broken("stream %d: too many pieces", s.id)
	}
	if s.arrived(f.Value, f.Data) {
		m.tell(s, Readable)
	}
	return nil
}
