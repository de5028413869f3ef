// Package scheduletest helps test schedulers. It provides views of transfers, and Conformance, which checks the
// properties that the machine expects of every scheduler.
package scheduletest
