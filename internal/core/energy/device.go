package energy

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

//go:embed devices/*.toml
var files embed.FS

// Device has the parameters of one phone.
type Device struct {
	Name   string                 `toml:"name"`
	Source string                 `toml:"source"` // where the figures were published
	Radios map[string]*radioTable `toml:"radio"`
	CPU    *CPU                   `toml:"cpu"` // nil if not published
}

// radioTable is a radio as described in its device's file. Lists have a value for each signal strength.
type radioTable struct {
	// ascending; RSSI for Wi-Fi, RSRP for LTE; empty = power is independent of it
	SignalDBm       []float64    `toml:"signal_dbm"`
	DefaultDBm      float64      `toml:"default_dbm"`
	RxMilliwatts    []float64    `toml:"rx_mw"`
	TxMilliwatts    []float64    `toml:"tx_mw"`
	RxNanojoulesBit float64      `toml:"rx_nj_per_bit"`
	TxNanojoulesBit float64      `toml:"tx_nj_per_bit"`
	JoinMillis      float64      `toml:"join_ms"`
	Promotion       phaseTable   `toml:"promotion"`
	Tail            []phaseTable `toml:"tail"`
	Idle            phaseTable   `toml:"idle"`
}

// phaseTable is a phase of constant power. With a period, the radio takes that power for OnMillis of each period and
// none otherwise.
type phaseTable struct {
	State        string  `toml:"state"`
	AtRx         bool    `toml:"at_rx"` // the power is that of receiving
	Milliwatts   float64 `toml:"mw"`
	OnMillis     float64 `toml:"on_ms"`
	PeriodMillis float64 `toml:"period_ms"`
	StayMillis   float64 `toml:"stay_ms"`
}

// watts returns the mean power over a period.
func (p phaseTable) watts() float64 {
	if p.PeriodMillis > 0 {
		return p.Milliwatts / 1000 * p.OnMillis / p.PeriodMillis
	}
	return p.Milliwatts / 1000
}

// Devices returns the names that [Find] knows, sorted.
func Devices() []string {
	entries, err := files.ReadDir("devices")
	if err != nil {
		return nil // the files are compiled in; TestDevices would find an error
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Find returns a device by the name of its file, such as "galaxy-s3". The error lists the names.
func Find(name string) (*Device, error) {
	if !slices.Contains(Devices(), name) {
		return nil, fmt.Errorf("unknown device %q: use one of %s", name, strings.Join(Devices(), ", "))
	}
	text, err := files.ReadFile("devices/" + name + ".toml")
	if err != nil {
		return nil, err
	}
	var d Device
	meta, err := toml.Decode(string(text), &d)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("device %s: unknown keys %v", name, unknown)
	}
	return &d, nil
}

// FindRadio returns a radio by device and name, such as "galaxy-s3/lte", at the default signal strength from the
// device's file. The error lists the names.
func FindRadio(name string) (*Radio, error) {
	device, radio, ok := strings.Cut(name, "/")
	if !ok {
		return nil, fmt.Errorf("radio %q: want DEVICE/RADIO, for example galaxy-s3/lte", name)
	}
	d, err := Find(device)
	if err != nil {
		return nil, err
	}
	t, ok := d.Radios[radio]
	if !ok {
		return nil, d.unknown(radio)
	}
	return d.Radio(radio, t.DefaultDBm)
}

// unknown returns the error for a radio that the device does not have.
func (d *Device) unknown(radio string) error {
	return fmt.Errorf("%s has no radio %q: use one of %s", d.Name, radio,
		strings.Join(slices.Sorted(maps.Keys(d.Radios)), ", "))
}

// Radio returns a radio of the device by its name, "wifi" or "lte", at a signal strength in dBm: RSSI for Wi-Fi, RSRP
// for the others. Between two measured strengths the power is interpolated; beyond them it is that of the nearest one.
func (d *Device) Radio(name string, signalDBm float64) (*Radio, error) {
	t, ok := d.Radios[name]
	if !ok {
		return nil, d.unknown(name)
	}
	r := &Radio{
		promotionWatts:    t.Promotion.watts(),
		promotionDuration: millis(t.Promotion.StayMillis),
		rxWatts:           interpolate(t.SignalDBm, t.RxMilliwatts, signalDBm) / 1000,
		txWatts:           interpolate(t.SignalDBm, t.TxMilliwatts, signalDBm) / 1000,
		rxJoulesPerByte:   8e-9 * t.RxNanojoulesBit,
		txJoulesPerByte:   8e-9 * t.TxNanojoulesBit,
		join:              millis(t.JoinMillis),
		idleWatts:         t.Idle.watts(),
	}
	if len(t.Tail) > maxPhases {
		return nil, fmt.Errorf("%s: radio %q has %d phases in its tail, more than %d", d.Name, name, len(t.Tail),
			maxPhases)
	}
	for i, p := range t.Tail {
		s := slices.Index(stateNames[:], p.State)
		if s < 0 {
			return nil, fmt.Errorf("%s: radio %q has an unknown state %q in its tail", d.Name, name, p.State)
		}
		r.tail[i] = phase{State(s), p.watts(), millis(p.StayMillis)}
		if p.AtRx {
			r.tail[i].watts = r.rxWatts
		}
	}
	r.phases = len(t.Tail)
	return r, nil
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// interpolate returns the value at x on the straight lines through the points; beyond the first or last point, that
// point's value. Without xs there is only one value.
func interpolate(xs, ys []float64, x float64) float64 {
	if len(xs) == 0 {
		return ys[0]
	}
	i, found := slices.BinarySearch(xs, x)
	switch {
	case found || i == 0:
		return ys[i]
	case i == len(xs):
		return ys[i-1]
	}
	return ys[i-1] + (ys[i]-ys[i-1])*(x-xs[i-1])/(xs[i]-xs[i-1])
}
