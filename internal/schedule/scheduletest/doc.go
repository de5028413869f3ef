// Package scheduletest helps to test schedulers. It has views of transfers, and Conformance, which checks the properties that the
// machine relies on in every scheduler.
package scheduletest
