package schedule

// What is tuned: the tests compute with it rather than repeat it.
const (
	FirstSize = firstSize
	WindowDiv = windowDiv
	Longest   = longest
	TailMin   = tailMin
	RescueMin = rescueMin
	Lead      = lead
)
