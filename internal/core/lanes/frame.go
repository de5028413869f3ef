package lanes

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind is the type of a frame.
type Kind uint8

// The kinds of frames. Value is a number that depends on the kind, Stream the frame's stream or, where noted, a lane.
const (
	Open     Kind = iota + 1 // the client opens a stream: Data = destination, Value = how much the server may send
	Opened                   // the server has connected it: Value = how much the client may send
	Data                     // Value = offset of the first byte
	Fin                      // no more bytes follow; Value = length of the stream
	Reset                    // the stream ends at once; Value = cause
	Window                   // Value = offset up to which the stream may be sent
	Ack                      // Stream = lane, Value = how many numbered frames arrived over it
	Suspect                  // Stream = lane over which an answer is late
	Ping                     // carries nothing; its acknowledgment shows that the lane works
	lastKind = Ping
)

// numbered reports whether a frame counts for acknowledgments. An acknowledgment does not: it would be acknowledged
// forever.
func (k Kind) numbered() bool { return k != Ack && k != Suspect }

const (
	// headerSize is the length of a frame's header, in bytes: kind, 0, length of Data, Stream, Value.
	headerSize = 16
	// MaxData is the most Data a frame can carry, in bytes: with the header it fits into one TLS record.
	MaxData = 16<<10 - headerSize
	maxOpen = 300 // most bytes of a destination
)

// ErrProtocol means that the other end violated the protocol.
var ErrProtocol = errors.New("the other end of the relay breaks the protocol")

// Frame is one message.
type Frame struct {
	Kind   Kind
	Stream uint32
	Value  uint64
	Data   []byte
}

// Append appends the encoded frame to b.
func (f Frame) Append(b []byte) []byte {
	b = append(b, byte(f.Kind), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.Data)))
	b = binary.BigEndian.AppendUint32(b, f.Stream)
	b = binary.BigEndian.AppendUint64(b, f.Value)
	return append(b, f.Data...)
}

// Decode decodes the first frame of b. n is its length in bytes, 0 if b contains only part of it. Data aliases b. The
// error is [ErrProtocol].
func Decode(b []byte) (f Frame, n int, err error) {
	if len(b) < headerSize {
		return Frame{}, 0, nil
	}
	f = Frame{Kind: Kind(b[0]), Stream: binary.BigEndian.Uint32(b[4:]), Value: binary.BigEndian.Uint64(b[8:])}
	size := int(binary.BigEndian.Uint16(b[2:]))
	switch {
	case f.Kind == 0 || f.Kind > lastKind || b[1] != 0 || size > MaxData:
		return Frame{}, 0, fmt.Errorf("%w: kind %d, length %d", ErrProtocol, b[0], size)
	case f.Kind != Open && f.Kind != Data && size > 0, f.Kind == Open && size > maxOpen, f.Kind == Data && size == 0:
		return Frame{}, 0, fmt.Errorf("%w: %d bytes in a frame of kind %d", ErrProtocol, size, f.Kind)
	case f.Value > maxOffset:
		return Frame{}, 0, fmt.Errorf("%w: offset %d", ErrProtocol, f.Value)
	case len(b) < headerSize+size:
		return Frame{}, 0, nil
	}
	f.Data = b[headerSize : headerSize+size : headerSize+size]
	return f, headerSize + size, nil
}

// maxOffset bounds offsets, so that the sum of two does not overflow.
const maxOffset = 1 << 62
