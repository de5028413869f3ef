package literature_test

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule/scheduletest"
)

const (
	kb   = 1e3 // the paper's units are decimal
	mb   = 1e6
	kib  = 1 << 10
	mib  = 1 << 20
	mbit = 1e6 / 8 // bytes per second
	ms   = time.Millisecond
	huge = 1 << 40 // a reorder window that is never full
)

var (
	start         = scheduletest.Start
	rng           = scheduletest.Range
	link          = scheduletest.Link
	equalLinks    = scheduletest.EqualLinks
	newView       = scheduletest.NewView
	take          = scheduletest.Take
	ask           = scheduletest.Ask
	apply         = scheduletest.Apply
	fetch         = scheduletest.Fetch
	expect        = scheduletest.Expect
	show          = scheduletest.Show
	drain         = scheduletest.Drain
	sameDecisions = scheduletest.SameDecisions
)
