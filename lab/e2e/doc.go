// Package e2e tests the built program as users see it: real clients download through it from a real nginx over links
// that slow down, die and come back, in the namespaces of package netlab. The package contains only tests, and knows
// the program only by its flags, ports and exit codes.
//
// Clients and origins of other projects run as packaged; a test whose program is not installed is skipped. `make test`
// installs the small ones, `make matrix` also Chromium, Firefox, Node and Caddy, which it builds from testdata/caddy, a
// module of its own.
//
// The tests need root and nginx; without them they are skipped and say so. They assert bytes, events, and which link
// carried which bytes. They assert times only as generous bounds, since the machine may be shared; `tributary-lab
// play`, `bench` and `ttfb` measure them.
//
// If the tests are built with the race detector, so is the program, and a race in it fails the test.
package e2e
