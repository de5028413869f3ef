// Package demo shows Tributary on any machine, without root and without a network: an origin and two emulated links on
// loopback, four downloads of one object, and a table.
//
// A link is emulated by a relay in user space (relay): traffic is paced to its rate, which all its connections share, and
// delayed; a killed link keeps silent, as a radio out of reach does, until it is revived. It is a rough model: no loss, no
// queue of its own, and the congestion control is that of loopback. The lab has the real thing.
//
// The proxy is the real one; the caller passes in the function that starts it, and its dials go through the relays.
package demo
