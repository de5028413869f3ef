package power

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Source is a source of power readings.
type Source interface {
	// String describes what is measured, for the user.
	String() string
	// Read returns the current reading; now is the time of the call.
	Read(now time.Time) (Reading, error)
}

// Reading is one reading of a source.
type Reading struct {
	Watts        float64 // current power; for a counter the mean since the previous reading, 0 at the first one
	AverageWatts float64 // over the averaging time of the battery's chip, 0 if it does not average
	Joules       float64 // for a counter: since the first reading
	Counted      bool    // the source is a counter: Joules is exact
}

// ErrNone means that this machine has no source of power readings.
var ErrNone = errors.New("neither a battery nor an energy counter of the processor")

// Find returns the source of a machine: its batteries, otherwise the RAPL counters. root is /sys/class, or another
// folder that contains power_supply and powercap. The error, which wraps [ErrNone] or [fs.ErrPermission], says where
// Find looked and what to do.
func Find(root string) (Source, error) {
	b, err := findBattery(filepath.Join(root, "power_supply"))
	if b != nil || err != nil {
		return b, err
	}
	r, err := findRAPL(filepath.Join(root, "powercap"))
	if r != nil || err != nil {
		return r, err
	}
	return nil, fmt.Errorf("%w: %s lists no battery, %s no package of intel-rapl; measure on a laptop or a phone, or let "+
		"tributary power --pcap FILE say what a radio would take",
		ErrNone, filepath.Join(root, "power_supply"), filepath.Join(root, "powercap"))
}

// battery reads the batteries that supply the machine: volts times amperes, or watts if that is what the kernel shows.
type battery struct{ folders []string }

// findBattery returns nil if there is none. It lists the folders at each call: a battery may be replaced.
func findBattery(root string) (Source, error) {
	folders, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		return nil, err
	}
	b := &battery{}
	supplied := false
	for _, f := range folders {
		if text(f, "type") != "Battery" || text(f, "scope") == "Device" { // a mouse's, for example
			continue
		}
		if text(f, "present") == "0" {
			continue
		}
		b.folders = append(b.folders, f)
		supplied = supplied || text(f, "status") == "Discharging"
	}
	if len(b.folders) == 0 {
		return nil, nil
	}
	if !supplied {
		return nil, fmt.Errorf("%s says %q: the current is that of the charger; unplug the charger and try again",
			filepath.Base(b.folders[0]), text(b.folders[0], "status"))
	}
	return b, nil
}

func (b *battery) String() string {
	var names []string
	for _, f := range b.folders {
		names = append(names, filepath.Base(f))
	}
	return "volts by amperes of " + strings.Join(names, " and ") + ": the whole machine"
}

func (b *battery) Read(time.Time) (r Reading, err error) {
	for _, f := range b.folders {
		now, err := watts(f, "now")
		if err != nil {
			return Reading{}, err
		}
		r.Watts += now
		if avg, err := watts(f, "avg"); err == nil {
			r.AverageWatts += avg
		}
	}
	return r, nil
}

// watts returns the power that a battery delivers, from the attributes with the suffix now or avg.
func watts(folder, which string) (float64, error) {
	volts, err := micro(folder, "voltage_now")
	if err == nil {
		var amperes float64
		if amperes, err = micro(folder, "current_"+which); err == nil {
			return volts * math.Abs(amperes), nil // some drivers report discharging as negative
		}
	}
	if w, powerErr := micro(folder, "power_"+which); powerErr == nil {
		return math.Abs(w), nil
	}
	return 0, fmt.Errorf("%s does not report its power: %w", filepath.Base(folder), err)
}

// rapl reads the counters of the processor packages, or of the whole board if the processor has one.
type rapl struct {
	domains []domain
	joules  float64
	last    time.Time
}

type domain struct {
	folder, name string
	last, most   float64 // microjoules; the counter returns to 0 after most
}

// findRAPL returns nil if there is none.
func findRAPL(root string) (Source, error) {
	folders, err := filepath.Glob(filepath.Join(root, "intel-rapl:*"))
	if err != nil {
		return nil, err
	}
	r := &rapl{}
	for _, f := range folders {
		name := text(f, "name")
		if strings.Count(filepath.Base(f), ":") != 1 || name != "psys" && !strings.HasPrefix(name, "package-") {
			continue // a part of a package
		}
		d := domain{folder: f, name: name}
		if d.last, err = number(f, "energy_uj"); err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return nil, fmt.Errorf("this machine has no battery, and only root may read the processor's energy counter: %w; run this with sudo", err)
			}
			return nil, err
		}
		if d.most, err = number(f, "max_energy_range_uj"); err != nil {
			return nil, err
		}
		if name == "psys" { // includes the packages
			r.domains = []domain{d}
			break
		}
		r.domains = append(r.domains, d)
	}
	if len(r.domains) == 0 {
		return nil, nil
	}
	return r, nil
}

func (r *rapl) String() string {
	if r.domains[0].name == "psys" {
		return "RAPL's counter psys, since there is no battery: processor, memory and board, without the screen and perhaps without radios"
	}
	return fmt.Sprintf("RAPL's counters of %d processor package(s), since there is no battery: without radios and screen",
		len(r.domains))
}

func (r *rapl) Read(now time.Time) (Reading, error) {
	var delta float64
	for i := range r.domains {
		d := &r.domains[i]
		uj, err := number(d.folder, "energy_uj")
		if err != nil {
			return Reading{}, err
		}
		if uj < d.last {
			delta += d.most
		}
		delta += uj - d.last
		d.last = uj
	}
	reading := Reading{Counted: true}
	if !r.last.IsZero() {
		r.joules += delta / 1e6
		if s := now.Sub(r.last).Seconds(); s > 0 {
			reading.Watts = delta / 1e6 / s
		}
	}
	r.last, reading.Joules = now, r.joules
	return reading, nil
}

// text returns the content of an attribute, "" if it cannot be read.
func text(folder, name string) string {
	b, _ := os.ReadFile(filepath.Join(folder, name))
	return strings.TrimSpace(string(b))
}

func number(folder, name string) (float64, error) {
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
}

func micro(folder, name string) (float64, error) {
	v, err := number(folder, name)
	return v / 1e6, err
}
