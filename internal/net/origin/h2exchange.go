package origin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// fieldCost is added to the length of each field's name and value in the size of a head (RFC 9113 section 6.5.2).
const fieldCost = 32

// errEnd marks the proper end of an answer.
var errEnd = io.EOF

// ofConnection lists the fields that belong to a connection. HTTP/2 forbids them (RFC 9113 section 8.2.2).
var ofConnection = []string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}

// exchange is one request and its answer. The session's mu guards what can change.
type exchange struct {
	request *engine.RangeRequest
	fields  []hpack.HeaderField
	behind  bool  // sent before the answers to earlier requests were read
	asked   int64 // length of the range, maxOpen if the request names no last byte

	id         uint32 // of the stream, 0 before it is opened
	window     int64  // bytes that the origin may still send on it
	sendWindow int64  // bytes that this side may still send

	interim  []interim // not yet handed out
	interims int       // number received so far
	room     int       // bytes left for heads

	resp     *http.Response
	verdict  Verdict
	unwanted bool // not the wanted answer: its body is cancelled
	trailer  http.Header

	size     int64 // length of the wanted part of the body, -1 = unknown
	declared int64 // Content-Length, -1 = none
	long     bool  // the body may be longer than asked
	cut      bool  // only a part of the body is wanted
	clamped  bool  // its window was shrunk to that part
	received int64
	coming   int64 // rest of the DATA frame being received
	taken    int64 // bytes of received that were read
	unread   buffer
	err      error // nothing more will arrive: errEnd, or the reason
}

type interim struct {
	status int
	header http.Header
}

// newExchange builds the request for a, with the same fields as over HTTP/1.1.
func newExchange(a *engine.RangeRequest) (*exchange, error) {
	x := &exchange{
		request:  a,
		asked:    maxOpen,
		room:     MaxHead,
		size:     -1,
		declared: -1,
	}
	x.add(":authority", a.Target.Host)
	x.add(":method", http.MethodGet)
	x.add(":path", a.Target.Path)
	x.add(":scheme", a.Target.Scheme)
	err := eachField(a, func(name, value string) {
		name = strings.ToLower(name)
		if name != "host" && name != "te" && !slices.Contains(ofConnection, name) {
			x.add(name, value)
		}
	})
	if err != nil {
		return nil, err
	}
	if lastNamed(a) {
		x.asked = a.Range.Len()
	}
	return x, nil
}

func (x *exchange) add(name, value string) {
	x.fields = append(x.fields, hpack.HeaderField{Name: name, Value: value})
}

// lastNamed reports whether the request names the last byte it wants.
func lastNamed(a *engine.RangeRequest) bool {
	return a.Range != (segment.Range{}) && a.Range.End != byterange.Open
}

// endless reports whether judge may accept an answer that is longer than asked.
func (x *exchange) endless() bool { return x.request.Want == nil || !lastNamed(x.request) }

// open reports whether more may arrive on the stream of x.
func (x *exchange) open() bool { return x != nil && x.id != 0 && x.err == nil }

// held returns how many bytes wait to be read.
func (x *exchange) held() int64 { return x.received - x.taken }

// ready returns how many bytes of a body of known size the reader may have. The last one waits for the end of the
// answer, which most origins send together with it: an answer that is longer than announced is malformed as a whole
// (RFC 9113 section 8.1.1), so nobody may take it for complete. A body that this side cuts has no such end.
func (x *exchange) ready() int64 {
	left := x.size - x.taken
	if !x.cut && (x.err == nil || errors.Is(x.err, ErrMalformed) || x.err == errSurplus) {
		left--
	}
	return left
}

// due returns how many more bytes the origin may send before some are read.
func (x *exchange) due() int64 {
	left := int64(streamWindow)
	switch {
	case !x.open() || x.unwanted:
		return 0
	case x.size >= 0:
		left = x.size - x.received - x.coming
	case x.resp == nil && !x.endless():
		left = x.asked
	}
	return max(0, min(left, streamWindow-x.held()-x.coming))
}

// need returns how many bytes of x may have to wait in memory until they are read.
func (x *exchange) need() int64 {
	switch {
	case x.err != nil || x.unwanted:
		return x.held()
	case x.resp == nil:
		return min(x.asked, streamWindow)
	case x.size < 0:
		return maxOpen
	case x.long:
		return min(x.size-x.taken, maxOpen)
	}
	return min(x.size-x.taken, streamWindow)
}

// fail ends the exchange. s.mu is held.
func (x *exchange) fail(s *session, err error) {
	if x.err != nil {
		return
	}
	x.err = err
	delete(s.streams, x.id)
	if x.clamped {
		s.unclamp()
	}
	s.change.Broadcast()
}

// head handles the head of an answer, or an interim answer.
func (x *exchange) head(f *http2.MetaHeadersFrame) error {
	status := f.PseudoValue("status")
	code, err := strconv.Atoi(status)
	if err != nil || len(status) != 3 || len(f.PseudoFields()) != 1 {
		return fmt.Errorf("%w: :status %q", ErrMalformed, status)
	}
	header, err := x.fieldsOf(f)
	switch {
	case err != nil:
		return err
	case code < 100:
		return fmt.Errorf("%w: %w", ErrMalformed, errBadStatus)
	case code == http.StatusSwitchingProtocols: // RFC 9113 section 8.6
		return errSwitched
	case code < 200 && f.StreamEnded():
		return fmt.Errorf("%w: it ends with an interim response", ErrMalformed)
	case code < 200:
		if x.interims++; x.interims > MaxInterim {
			return errInterim
		}
		x.interim = append(x.interim, interim{code, header})
		return nil
	}
	if x.declared, err = contentLength(header); err != nil {
		return err
	}
	length := x.declared
	switch {
	case code == http.StatusNoContent || code == http.StatusNotModified:
		x.declared, length = 0, 0 // a Content-Length there is that of another answer (RFC 9110 section 8.6)
	case length < 0 && f.StreamEnded():
		length = 0
	}
	x.resp = &http.Response{
		Status:        status + " " + http.StatusText(code),
		StatusCode:    code,
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        header,
		ContentLength: length,
		Body:          http.NoBody,
		Trailer:       announced(header),
	}
	x.judge(time.Now())
	return nil
}

// fieldsOf returns the fields of a head; their names and values are valid.
func (x *exchange) fieldsOf(f *http2.MetaHeadersFrame) (http.Header, error) {
	fields := f.RegularFields()
	values := make([]string, len(fields)) // most fields have one value: all share an array
	header := make(http.Header, len(fields))
	for i, field := range fields {
		if x.room -= len(field.Name) + len(field.Value) + fieldCost; x.room < 0 {
			return nil, errHeadTooLong
		}
		if slices.Contains(ofConnection, field.Name) {
			return nil, fmt.Errorf("%w: a field %s", ErrMalformed, field.Name)
		}
		name, value := textproto.CanonicalMIMEHeaderKey(field.Name), textproto.TrimString(field.Value)
		if all := header[name]; all != nil {
			header[name] = append(all, value)
		} else {
			values[i] = value
			header[name] = values[i : i+1 : i+1]
		}
	}
	return header, nil
}

// contentLength returns the value of Content-Length, -1 if there is none.
func contentLength(h http.Header) (int64, error) {
	all := h["Content-Length"]
	if len(all) == 0 {
		return -1, nil
	}
	n, err := strconv.ParseUint(all[0], 10, 63)
	if err != nil || len(all) > 1 {
		return 0, fmt.Errorf("%w: Content-Length %q", ErrMalformed, all)
	}
	return int64(n), nil
}

// announced removes Trailer from a head and returns the field names in it (RFC 9110 section 6.6.2).
func announced(h http.Header) http.Header {
	var t http.Header
	for _, value := range h["Trailer"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = textproto.TrimString(name); name != "" {
				if t == nil {
					t = http.Header{}
				}
				t[textproto.CanonicalMIMEHeaderKey(name)] = nil
			}
		}
	}
	delete(h, "Trailer")
	return t
}

// judge judges an answer by its head, before any of its body arrives.
func (x *exchange) judge(now time.Time) {
	resp := x.resp
	h := Head{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, Trailer: len(resp.Trailer) > 0}
	if x.request.Want == nil {
		x.verdict = Identify(x.request, h)
	} else {
		x.verdict = Check(x.request, h, now)
		x.unwanted = x.verdict.Err != nil
	}
	size := resp.ContentLength
	if r := x.verdict.Range; x.verdict.Err == nil && r.End >= 0 {
		size = r.Len()
	}
	x.long = size < 0 || size > x.asked
	if !x.cut || size >= 0 && size <= x.size {
		x.size, x.cut = size, false
	}
}

// trailers handles the fields after a body.
func (x *exchange) trailers(f *http2.MetaHeadersFrame) error {
	if !f.StreamEnded() || len(f.PseudoFields()) > 0 {
		return fmt.Errorf("%w: fields in the middle of a body", ErrMalformed)
	}
	var err error
	x.trailer, err = x.fieldsOf(f)
	return err
}
