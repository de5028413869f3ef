// Package demo shows Tributary on any machine, without root and without a network: an origin and two emulated links on
// loopback, four downloads of one object, and a table.
//
// A relay in user space emulates a link: it delays traffic and paces it to the link's rate, which all its connections
// share. A killed link is silent, like a radio out of range, until it is revived. The model is rough: it has no loss
// and no queue, and its congestion control is that of loopback. The lab has realistic links.
//
// The proxy is the real one; the caller passes in the function that starts it, and its dials go through the relays.
package demo
