package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/lab/power"
)

// powerFlags are the flags of power.
type powerFlags struct {
	idle, tail, load time.Duration
	calibrate, json  bool
	captures         []string
	device           string
}

// fullLoad is the result that --calibrate stores: the machine's power with every core busy.
type fullLoad struct {
	Source string  `json:"source"`
	Watts  float64 `json:"full_load_watts"`
}

// fullLoadFile is the name of its file in the state folder, of at most fullLoadMost bytes.
const (
	fullLoadFile = "power.json"
	fullLoadMost = 4096
)

// meter measures the energy that this machine uses.
type meter struct {
	sysfs          string // folder that contains power_supply and powercap
	state          string // file of the full load
	stdout, stderr io.Writer
}

func powerCommand() *cobra.Command {
	m := meter{
		sysfs: "/sys/class", state: statefile.Path(os.Getenv, fullLoadFile), stdout: os.Stdout, stderr: os.Stderr,
	}
	return m.command()
}

func (m *meter) command() *cobra.Command {
	var f powerFlags
	c := &cobra.Command{
		Use:   "power [flags] -- COMMAND [ARGUMENT...]",
		Short: "Measure the energy that a command uses, or model that of captured packets",
		Long: `Run a command and measure the energy that this machine uses while it runs, and for some time afterwards, since radios
stay awake for seconds after the last byte. The idle machine is measured first, and the NET J column shows the energy
above idle.

The battery's voltage and current are read every second, so unplug the charger. On a machine without a battery, the
processor's energy counters are read instead (RAPL, needs root). The report is printed to standard error, and power exits
with the exit code of the command.

With --calibrate, power keeps every core and the loopback interface busy and stores the result. Later reports show energy
as a percentage of this full load.

With --pcap, power does not run anything. It reads packet captures (pcap or pcapng, one interface each) and prints the
energy that a phone's radios would have used for them, according to published measurements.`,
		Example: `  tributary-lab power -- tributary get https://example.com/big.iso
  sudo tributary-lab power --idle 30s --tail 0s -- curl -O https://example.com/big.iso
  tributary-lab power --calibrate
  tributary-lab power --device galaxy-s3 --pcap wifi=wlan0.pcap --pcap lte=wwan0.pcap`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(f.captures) > 0 && len(args) > 0, f.calibrate && len(args) > 0:
				return errors.New("--pcap and --calibrate do not run a command: omit it")
			case len(f.captures) > 0 && f.calibrate:
				return errors.New("--pcap and --calibrate exclude each other: choose one")
			case len(f.captures) > 0:
				return m.captured(f)
			case f.calibrate:
				return m.calibrate(cmd.Context(), f)
			case len(args) == 0:
				return errors.New("missing command: give one after --, or use --pcap or --calibrate")
			}
			return m.measure(cmd.Context(), f, args)
		},
	}
	c.Flags().DurationVar(&f.idle, "idle", 10*time.Second, "measure the idle machine for this `DURATION` first")
	c.Flags().DurationVar(&f.tail, "tail", 15*time.Second, "continue to measure for this `DURATION` after the command")
	c.Flags().BoolVar(&f.calibrate, "calibrate", false,
		"measure the machine with every core busy, and store the result")
	c.Flags().DurationVar(&f.load, "for", time.Minute, "with --calibrate: keep the cores busy for this `DURATION`")
	c.Flags().StringArrayVar(&f.captures, "pcap", nil,
		"model the energy of the packets in `[RADIO=]FILE`; RADIO is wifi if omitted; repeatable")
	c.Flags().StringVar(&f.device, "device", "galaxy-s3",
		"with --pcap: model the radios of this `PHONE`: "+strings.Join(energy.Devices(), ", "))
	c.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	return c
}

// captured prints the modeled energy of captures.
func (m *meter) captured(f powerFlags) error {
	all := []power.Capture{}
	for _, spec := range f.captures {
		radio, file, ok := strings.Cut(spec, "=")
		if !ok {
			radio, file = "wifi", spec
		}
		if _, err := energy.FindRadio(f.device + "/" + radio); err != nil {
			return err
		}
		c, err := power.ReadCapture(file, f.device+"/"+radio)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if f.json {
		return printJSON(m.stdout, all)
	}
	w := tabwriter.NewWriter(m.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "RADIO\tPACKETS\tMB UP\tMB DOWN\tSECONDS\tWAKE-UPS\tPROMOTION J\tACTIVE J\tTAIL J\tRADIO J\t")
	total := 0.0
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.2f\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t\n", c.Device, c.Packets,
			float64(c.Up)/1e6, float64(c.Down)/1e6, c.Seconds, c.Wakeups, c.Promotion, c.Active, c.Tail, c.Radio)
		total += c.Radio
	}
	if len(all) > 1 {
		fmt.Fprintf(w, "all\t\t\t\t\t\t\t\t\t%.3f\t\n", total)
	}
	return w.Flush()
}

// measure runs a command and reports its energy.
func (m *meter) measure(ctx context.Context, f powerFlags, args []string) error {
	source, err := power.Find(m.sysfs)
	if err != nil {
		return err
	}
	cmd := func(ctx context.Context) error {
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, m.stdout, m.stderr
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
		c.WaitDelay = 10 * time.Second
		return c.Run()
	}
	r, err := power.Measure(ctx, power.Options{Source: source, Every: time.Second, Idle: f.idle, Tail: f.tail}, cmd)
	var exit *exec.ExitError
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("the measurement was interrupted")
	case err != nil && !(errors.As(err, &exit) && exit.ExitCode() > 0):
		return fmt.Errorf("measure %s: %w", args[0], err)
	}
	if err := m.report(r, f); err != nil {
		return err
	}
	return err
}

// report prints the energy that a command used.
func (m *meter) report(r power.Report, f powerFlags) error {
	load := m.readFullLoad(r.Source)
	use := func(p power.Part) float64 {
		if load <= 0 || p.Seconds <= 0 {
			return 0
		}
		return power.Utilisation(p.Joules, time.Duration(p.Seconds*float64(time.Second)), load)
	}
	if f.json {
		return printJSON(m.stderr, struct {
			power.Report
			Utilisation float64 `json:"utilisation,omitempty"`
		}{r, use(r.Main)})
	}
	fmt.Fprintf(m.stderr, "Source, read every second: %s.\nIdle power, subtracted in the NET J column: %.3f W.\n",
		r.Source, r.IdleWatts)
	w := tabwriter.NewWriter(m.stderr, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "PART\tSECONDS\tJOULES\tNET J\tPEAK W\tP90 W\tMEDIAN W\t")
	for _, p := range []struct {
		name string
		power.Part
	}{{"main", r.Main}, {"tail", r.Tail}} {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", p.name, p.Seconds, p.Joules, p.NetJoules,
			p.PeakWatts, p.P90Watts, p.MedianWatts)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Main.AverageJoules > 0 {
		fmt.Fprintf(m.stderr, "Energy by the battery's own averages: main %.2f J, tail %.2f J.\n", r.Main.AverageJoules,
			r.Tail.AverageJoules)
	}
	if u := use(r.Main); u > 0 {
		fmt.Fprintf(m.stderr, "The main part used %.0f %% of the full load (%.2f W).\n", 100*u, load)
	}
	return nil
}

// calibrate measures the full load and stores its median.
func (m *meter) calibrate(ctx context.Context, f powerFlags) error {
	source, err := power.Find(m.sysfs)
	if err != nil {
		return err
	}
	if m.state == "" {
		return errors.New("no folder to store the result in: set HOME or XDG_STATE_HOME")
	}
	if err := statefile.Own(m.state); err != nil {
		return err
	}
	fmt.Fprintf(m.stderr, "Reading %s, with every core busy, for %s.\n", source, f.load)
	r, err := power.Measure(ctx, power.Options{Source: source, Every: time.Second, Idle: f.idle},
		func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, f.load)
			defer cancel()
			return power.FullLoad(ctx)
		})
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("the measurement was interrupted; nothing was stored")
	case err != nil:
		return fmt.Errorf("calibrate: %w", err)
	}
	kept := fullLoad{Source: r.Source, Watts: r.Main.MedianWatts}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	unlock, err := statefile.Lock(ctx, m.state)
	if err != nil {
		return err
	}
	defer unlock()
	if err := statefile.Replace(m.state, append(text, '\n')); err != nil {
		return err
	}
	if f.json {
		return printJSON(m.stdout, kept)
	}
	_, err = fmt.Fprintf(m.stdout, "full load: %.2f W (median), peak %.2f W, idle %.2f W; stored in %s\n", kept.Watts,
		r.Main.PeakWatts, r.IdleWatts, m.state)
	return err
}

// readFullLoad returns the stored power in watts, 0 if there is none for this source.
func (m *meter) readFullLoad(source string) float64 {
	text, err := statefile.Read(m.state, fullLoadMost)
	if err != nil {
		return 0
	}
	var kept fullLoad
	if json.Unmarshal(text, &kept) != nil || kept.Source != source {
		return 0
	}
	return kept.Watts
}
