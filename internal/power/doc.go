// Package power measures what a command takes in joules, by the battery's own meter or, where there is no battery, by the
// processor's; and it reads captures of packets and lets package energy say what their radios took.
package power
