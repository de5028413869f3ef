// Package page serves the live page of the admin port. It shows the rate of every link now and in the last five
// minutes, running and finished downloads, the reasons why other requests were not divided, and problems that doctor
// finds.
//
// The page shows names of hosts and files, so only root and the user who runs the proxy may see it; the caller
// identifies the user. Pages of other sites can neither read nor frame it. This package changes nothing: the page's
// list of downloads calls package rpc, which accepts this only at an address of its own.
//
// One goroutine, Run, takes a sample every second while downloads run or the page has viewers, encodes it once, and
// sends it to all viewers. Otherwise it sleeps.
package page
