// Package page serves the live page of the admin port: what every link carries now and in the last five minutes, the downloads that
// run and those that have ended, why others were not divided, and what keeps the proxy from working well.
//
// The page shows names of hosts and files, so only the user who runs the proxy, and root, may see it; the caller says who asks. A
// page of another site can neither read it nor frame it. It changes nothing.
//
// One goroutine, Run, takes a sample each second while something runs or somebody watches, and sends it to those who do, encoded
// once. While nothing runs and nobody watches it sleeps.
package page
