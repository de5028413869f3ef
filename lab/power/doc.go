// Package power measures the energy that a command uses, in joules, with the battery's own meter or, on machines
// without a battery, with the processor's counters. It also reads packet captures, for which package energy models the
// energy of the radios.
package power
