package schedule

// What is tuned: the tests compute with it rather than repeat it.
const (
	WindowDiv = windowDiv
	Longest   = longest
	HedgeMin  = hedgeMin
	Lead      = lead
)
