// Package e2e tests the built program as its users meet it: real clients download through it from a real nginx over links
// that slow, die and come back, in the namespaces of package lab. It has no code but tests, and knows the program by its
// flags, its ports and its exit codes only.
//
// The tests need root and nginx; without them they are skipped and say so. They assert bytes, events and which link
// carried what. Times are asserted only as generous bounds, since the machine may be shared; `tributary-lab play`, `bench`
// and `ttfb` measure them.
//
// Where the tests are built with the race detector, so is the program, and a race in it fails the test.
package e2e
