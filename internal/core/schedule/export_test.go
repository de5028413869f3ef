package schedule

// Tuned constants. The tests compute with them instead of repeating them.
const (
	WindowDiv = windowDiv
	Longest   = longest
	HedgeMin  = hedgeMin
	Lead      = lead
)
