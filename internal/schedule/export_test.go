package schedule

// What is tuned: the tests compute with it rather than repeat it.
const (
	WindowDiv = windowDiv
	Longest   = longest
	RescueMin = rescueMin
	Lead      = lead
)
