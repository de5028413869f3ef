// Package contract tests package tributary with programs that take an http.RoundTripper: go-containerregistry and the
// AWS SDK for Go. The package contains only tests.
//
// Each test runs twice. The first run builds a lab (package netlab), serves an origin at its far end and starts the
// second run, which uses a Transport, in the client namespace. Both links are shaped, so an object that is worth
// dividing needs both.
//
// The tests need root; without it they are skipped and say so.
package contract
