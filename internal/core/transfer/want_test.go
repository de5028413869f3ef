package transfer

import (
	"fmt"
	"slices"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// want takes the first pending action that matches.
func (s *script) want(what string, ok func(Action) bool) Action {
	s.t.Helper()
	i := slices.IndexFunc(s.pending, ok)
	if i < 0 {
		s.t.Fatalf("want %s, have %s", what, s.show())
	}
	a := s.pending[i]
	s.pending = slices.Delete(s.pending, i, i+1)
	return a
}

func (s *script) wantOpen(link int8) uint32 {
	s.t.Helper()
	return s.want(fmt.Sprintf("Open on link %d", link), func(a Action) bool { return a.Kind == Open && a.Link == link }).Conn
}

func (s *script) wantFetch(link int8, from, to int64) *asked {
	s.t.Helper()
	a := s.want(fmt.Sprintf("Fetch of %v on link %d", span(from, to), link), func(a Action) bool {
		return a.Kind == Fetch && a.Link == link && a.Range == span(from, to)
	})
	return s.find(a)
}

func (s *script) wantFetchAll(link int8) *asked {
	s.t.Helper()
	return s.find(s.want(fmt.Sprintf("FetchAll on link %d", link), func(a Action) bool {
		return a.Kind == FetchAll && a.Link == link
	}))
}

func (s *script) wantFetchAhead(link int8, from, to int64) *asked {
	s.t.Helper()
	return s.find(s.want(fmt.Sprintf("FetchAhead of %v on link %d", span(from, to), link), func(a Action) bool {
		return a.Kind == FetchAhead && a.Link == link && a.Range == span(from, to)
	}))
}

// find returns the request of an action, even if its connection was closed at once.
func (s *script) find(a Action) *asked {
	if q := s.asked[a.Attempt]; q != nil {
		return q
	}
	return &asked{id: a.Attempt, conn: a.Conn, link: a.Link, want: a.Range.Start + a.Prefix, r: a.Range}
}

func (s *script) wantCredit(a *asked, upTo int64) {
	s.t.Helper()
	if a.credit != upTo {
		s.t.Fatalf("attempt %d may read up to %d, want %d", a.id, a.credit, upTo)
	}
}

func (s *script) wantClose(conn uint32) {
	s.t.Helper()
	s.want(fmt.Sprintf("CloseConn %d", conn), func(a Action) bool { return a.Kind == CloseConn && a.Conn == conn })
}

func (s *script) wantCut(a *asked, upTo int64) {
	s.t.Helper()
	s.want(fmt.Sprintf("Cut of attempt %d at %d", a.id, upTo), func(do Action) bool {
		return do.Kind == Cut && do.Attempt == a.id && do.UpTo == upTo
	})
}

func (s *script) wantKeep(conn uint32) {
	s.t.Helper()
	s.want(fmt.Sprintf("Keep %d", conn), func(a Action) bool { return a.Kind == Keep && a.Conn == conn })
}

// wantReport takes a report on a link: ReportSilent, ReportAlive, ReportNothingDue, ReportFailed, ReportHedged.
func (s *script) wantReport(k ActionKind, link int8) Action {
	s.t.Helper()
	return s.want(fmt.Sprintf("report %d on link %d", k, link), func(a Action) bool { return a.Kind == k && a.Link == link })
}

func (s *script) wantDone() {
	s.t.Helper()
	s.want("Done", func(a Action) bool { return a.Kind == Done })
}

func (s *script) wantFail(outcome fault.Outcome) {
	s.t.Helper()
	if a := s.want("Fail", func(a Action) bool { return a.Kind == Fail }); a.Outcome != outcome {
		s.t.Fatalf("fails for %v, want %v", a.Outcome, outcome)
	}
	s.drop(CloseConn, Keep)
	s.quiet()
}

// drop takes pending actions of some kinds.
func (s *script) drop(kinds ...ActionKind) {
	s.pending = slices.DeleteFunc(s.pending, func(a Action) bool { return slices.Contains(kinds, a.Kind) })
}

// quiet fails the test if anything is pending except credits and the request for a window.
func (s *script) quiet() {
	s.t.Helper()
	s.drop(Credit, Want)
	if len(s.pending) > 0 {
		s.t.Fatalf("want nothing more, have %s", s.show())
	}
}

var kindNames = map[ActionKind]string{
	Open: "Open", Fetch: "Fetch", FetchAll: "FetchAll", Credit: "Credit", Cut: "Cut", CloseConn: "CloseConn", Keep: "Keep", Want: "Want",
	ReportSilent: "ReportSilent", ReportAlive: "ReportAlive", ReportFailed: "ReportFailed", ReportHedged: "TakenOver", Done: "Done",
	Fail: "Fail", ReportDiffers: "ReportDiffers", Forget: "Forget", FetchAhead: "FetchAhead", ReportNothingDue: "ReportNothingDue",
}

func (s *script) show() string {
	out := "nothing"
	for i, a := range s.pending {
		if i == 0 {
			out = ""
		}
		out += fmt.Sprintf("%s{link %d conn %d attempt %d %v upTo %d why %v} ", kindNames[a.Kind], a.Link, a.Conn, a.Attempt, a.Range,
			a.UpTo, a.Outcome)
	}
	return out
}

// free returns the ranges that were not requested.
func (s *script) free() []segment.Range { return slices.Clone(s.m.led.Free()) }

func (s *script) wantFree(want ...segment.Range) {
	s.t.Helper()
	if got := s.free(); !slices.Equal(got, want) {
		s.t.Fatalf("free: %v, want %v", got, want)
	}
}

func (s *script) wantWaste(n int64) {
	s.t.Helper()
	if w := s.state().Waste; w != n {
		s.t.Fatalf("waste %d, want %d", w, n)
	}
}
