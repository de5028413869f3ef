package schedule

// Tuned constants: the tests compute with them rather than repeat them.
const (
	WindowDiv = windowDiv
	Longest   = longest
	HedgeMin  = hedgeMin
	Lead      = lead
)
