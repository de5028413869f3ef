// Package energy models what transfers cost a device in joules: its radios and its processor, and the power of a whole phone.
//
// A [Radio] has the parameters of one radio at one strength of its signal. A [Meter] is the state machine that reads the
// events (time, bytes up, bytes down) of one link and accounts for the joules of each state: promotion, transfer, the tail
// after the last byte, idle. Parameters come from published measurements, one file per device in the folder devices, which
// name their sources.
//
// Units: joules, watts, bytes and [time.Duration], in files also milliwatts, milliseconds, dBm and MHz, as names say.
//
// The package is pure: it reads no clock, and no function that is called for each event or decision allocates.
package energy
