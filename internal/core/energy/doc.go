// Package energy models the energy in joules that transfers cost a device: its radios and its processor, and the power
// of a whole phone.
//
// A [Radio] has the parameters of one radio at one signal strength. A [Meter] is the state machine that reads the
// events (time, bytes up, bytes down) of one link and accounts for the joules of each state: promotion, transfer, the
// tail after the last byte, and idle. Parameters come from published measurements. The folder devices has one file per
// device, which names its source.
//
// Units are joules, watts, bytes and [time.Duration]; in files also milliwatts, milliseconds, dBm and MHz, as the names
// say.
//
// The package is pure: it reads no clock. Functions that are called for each event or decision do not allocate.
//
// Reasons: docs/decisions/joules.md.
package energy
