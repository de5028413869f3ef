package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// invokePower runs tributary power on a machine whose battery delivers 2 W, or which has no battery.
func invokePower(t *testing.T, battery bool, home string, args ...string) (code int, stdout, stderr string) {
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
	a := &app{version: "v9", rawStdout: &out, rawStderr: &errs, proxy: noProxy, sysfs: sysfs, getenv: func(name string) string {
		if name == "XDG_STATE_HOME" {
			return home
		}
		return ""
	}}
	code = a.run(t.Context(), append([]string{"power"}, args...))
	return code, out.String(), errs.String()
}

func TestPower(t *testing.T) {
	home := t.TempDir()
	t.Run("no battery", func(t *testing.T) {
		code, _, stderr := invokePower(t, false, home, "--", "true")
		if code != exitFailure || !strings.Contains(stderr, "lists no battery") || !strings.Contains(stderr, "intel-rapl") {
			t.Errorf("%d, %q: it must say what it looked for", code, stderr)
		}
	})
	t.Run("a command", func(t *testing.T) {
		code, stdout, stderr := invokePower(t, true, home, "--idle", "1ms", "--tail", "1ms", "--", "sh", "-c", "echo hello; exit 3")
		if code != 3 || stdout != "hello\n" || !strings.Contains(stderr, "BAT0") || !strings.Contains(stderr, "Idle power, subtracted in the NET J column: 2.000 W") {
			t.Errorf("%d, %q, %q", code, stdout, stderr)
		}
		if strings.Contains(stderr, "full load") {
			t.Errorf("%q: nothing was calibrated", stderr)
		}
	})
	t.Run("calibrate", func(t *testing.T) {
		code, stdout, stderr := invokePower(t, true, home, "--calibrate", "--idle", "0s", "--for", "10ms")
		if code != exitOK || !strings.Contains(stdout, "full load: 2.00 W") {
			t.Fatalf("%d, %q, %q", code, stdout, stderr)
		}
		_, _, stderr = invokePower(t, true, home, "--idle", "0s", "--tail", "0s", "--json", "--", "true")
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
			if code, _, stderr := invokePower(t, true, home, args...); code != exitUsage {
				t.Errorf("%q: %d, %q", args, code, stderr)
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
	code, stdout, stderr := invokePower(t, false, "", "--pcap", name, "--pcap", "lte="+name)
	for _, want := range []string{"galaxy-s3/wifi", "0.039", "galaxy-s3/lte", "2.015", "2.054"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Fatalf("%d, %q, %q: want %s", code, stdout, stderr, want)
		}
	}
	code, stdout, _ = invokePower(t, false, "", "--json", "--pcap", "lte="+name)
	var got []struct {
		Radio  string
		Joules float64 `json:"radio_joules"`
		Tail   float64 `json:"tail_joules"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); code != exitOK || err != nil || len(got) != 1 || got[0].Radio != "galaxy-s3/lte" || got[0].Joules < 2 || got[0].Tail < 1.6 {
		t.Errorf("%d, %v, %s", code, err, stdout)
	}
}
