package power

import "time"

// PeakWatts returns the peak power of a whole phone that downloads 250 MB in time d. It is a line through the
// measurements of Skjolden 2019 section 7.4.2: 3.74 W at 24.86 s, and 0.5 W more for each 3.3 s less. The line is valid
// below 25 s.
func PeakWatts(d time.Duration) float64 { return 3.74 + (24.86-d.Seconds())*0.5/3.3 }

// Utilisation returns the part of a phone's full-load power that a transfer took (Skjolden 2019 section 7.4.5): its
// joules divided by those that full load would have taken in the same time.
func Utilisation(joules float64, d time.Duration, fullLoadWatts float64) float64 {
	return joules / (fullLoadWatts * d.Seconds())
}

// Rate compares a transfer over several links with the best transfer over one link by seconds per joule (Skjolden 2019
// section
// 7.4.3, whose printed formula is inverted). It is the inverse of the ratio of mean powers: 0.5 means twice the power.
// It does not say which transfer took more energy.
func Rate(multi time.Duration, multiJoules float64, single time.Duration, singleJoules float64) float64 {
	return multi.Seconds() / multiJoules / (single.Seconds() / singleJoules)
}
