// Package scheduletest is for tests of schedulers: views of transfers to ask them about, and Conformance, the properties that
// the machine relies on in every scheduler.
package scheduletest
