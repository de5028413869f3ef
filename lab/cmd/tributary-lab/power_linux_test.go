package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// invokePower runs the command on a machine whose battery delivers 2 W, or which has no battery.
func invokePower(t *testing.T, battery bool, home string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	sysfs := t.TempDir()
	if battery {
		for name, text := range map[string]string{"type": "Battery", "status": "Discharging", "voltage_now": "4000000", "current_now": "500000"} {
			folder := filepath.Join(sysfs, "power_supply", "BAT0")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out, errs bytes.Buffer
	m := meter{sysfs: sysfs, state: filepath.Join(home, fullLoadFile), stdout: &out, stderr: &errs}
	c := m.command()
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	err = c.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestPower(t *testing.T) {
	home := t.TempDir()
	t.Run("no battery", func(t *testing.T) {
		_, _, err := invokePower(t, false, home, "--", "true")
		if err == nil || !strings.Contains(err.Error(), "lists no battery") || !strings.Contains(err.Error(), "intel-rapl") {
			t.Errorf("%v: it must say what it looked for", err)
		}
	})
	t.Run("a command", func(t *testing.T) {
		stdout, stderr, err := invokePower(t, true, home, "--idle", "1ms", "--tail", "1ms", "--", "sh", "-c", "echo hello; exit 3")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || stdout != "hello\n" || !strings.Contains(stderr, "BAT0") || !strings.Contains(stderr, "Idle power, subtracted in the NET J column: 2.000 W") {
			t.Errorf("%v, %q, %q", err, stdout, stderr)
		}
		if strings.Contains(stderr, "full load") {
			t.Errorf("%q: nothing was calibrated", stderr)
		}
	})
	t.Run("calibrate", func(t *testing.T) {
		stdout, stderr, err := invokePower(t, true, home, "--calibrate", "--idle", "0s", "--for", "10ms")
		if err != nil || !strings.Contains(stdout, "full load: 2.00 W") {
			t.Fatalf("%v, %q, %q", err, stdout, stderr)
		}
		_, stderr, _ = invokePower(t, true, home, "--idle", "0s", "--tail", "0s", "--json", "--", "true")
		var got struct {
			Utilisation float64
			Main        struct {
				Joules float64
			}
		}
		if err := json.Unmarshal([]byte(stderr), &got); err != nil || got.Utilisation < 0.99 || got.Utilisation > 1.01 || got.Main.Joules <= 0 {
			t.Errorf("%+v, %v: %s", got, err, stderr)
		}
	})
	t.Run("usage", func(t *testing.T) {
		for _, args := range [][]string{nil, {"--pcap", "x", "--", "true"}, {"--calibrate", "--", "true"}, {"--calibrate", "--pcap", "x"}, {"--pcap", "warp=x"}, {"--device", "nokia", "--pcap", "x"}} {
			if _, _, err := invokePower(t, true, home, args...); err == nil {
				t.Errorf("%q: no error", args)
			}
		}
	})
}

func TestPowerOfCaptures(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcap")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(128, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	if err := w.WritePacket(gopacket.CaptureInfo{CaptureLength: 60, Length: 60}, make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	// One packet: Wi-Fi's tail, 0.1850 * 0.210 = 0.039 J; LTE's promotion and tail at -100 dBm, 0.36 + 0.2 * 1.5355 + 1.34834 =
	// 2.015 J.
	stdout, stderr, err := invokePower(t, false, "", "--pcap", name, "--pcap", "lte="+name)
	for _, want := range []string{"galaxy-s3/wifi", "0.039", "galaxy-s3/lte", "2.015", "2.054"} {
		if err != nil || !strings.Contains(stdout, want) {
			t.Fatalf("%v, %q, %q: want %s", err, stdout, stderr, want)
		}
	}
	stdout, _, err = invokePower(t, false, "", "--json", "--pcap", "lte="+name)
	var got []struct {
		Radio  string
		Joules float64 `json:"radio_joules"`
		Tail   float64 `json:"tail_joules"`
	}
	if wrong := json.Unmarshal([]byte(stdout), &got); err != nil || wrong != nil || len(got) != 1 || got[0].Radio != "galaxy-s3/lte" || got[0].Joules < 2 || got[0].Tail < 1.6 {
		t.Errorf("%v, %v, %s", err, wrong, stdout)
	}
}
