package cli

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/relay"
)

// painted returns the image of a QR code as a terminal shows it. each is the width of a module in pixels.
func painted(t *testing.T, text string, each int) image.Image {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var rows [][]rune
	for _, line := range lines {
		inner, ok := strings.CutPrefix(line, qrColors)
		inner, closed := strings.CutSuffix(inner, qrPlain)
		if !ok || !closed {
			t.Fatalf("a line without colors, or whose colors go on: %q", line)
		}
		rows = append(rows, []rune(inner))
	}
	img := image.NewGray(image.Rect(0, 0, each*len(rows[0]), 2*each*len(rows)))
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			r := rows[y/each/2][x/each]
			half := '▀'
			if y/each%2 == 1 {
				half = '▄'
			}
			if r != '█' && r != half {
				img.SetGray(x, y, color.Gray{Y: 255})
			}
		}
	}
	return img
}

// pair runs "relay pair" and returns the printed link and the rest of the output.
func pair(t *testing.T, terminal bool, flags ...string) (link, rest string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{version: "v9", rawStdout: &out, rawStderr: &errs, outTerminal: terminal, getenv: func(string) string { return "" }}
	if code := a.run(t.Context(), append([]string{"relay", "pair", "relay.example.com:443"}, flags...)); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	link, rest, _ = strings.Cut(out.String(), "\n")
	if i, err := relay.ParseInvitation(link); err != nil || i.Address != "relay.example.com:443" {
		t.Fatalf("%q: %v", link, err)
	}
	return link, rest
}

// TestQRCode decodes the picture of a link's QR code. It is printed on a terminal, or on request.
func TestQRCode(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, plain := range []struct {
		terminal bool
		flags    []string
	}{{false, nil}, {true, []string{"--qr=false"}}} {
		if _, rest := pair(t, plain.terminal, plain.flags...); rest != "" {
			t.Errorf("terminal %v, %v: a code", plain.terminal, plain.flags)
		}
	}
	zbar, err := exec.LookPath("zbarimg")
	if err != nil {
		t.Skip("needs zbarimg of Debian's zbar-tools")
	}
	for _, drawn := range []struct {
		terminal bool
		flags    []string
	}{{true, nil}, {false, []string{"--qr"}}} {
		link, code := pair(t, drawn.terminal, drawn.flags...)
		if code == "" {
			t.Fatalf("terminal %v, %v: no code", drawn.terminal, drawn.flags)
		}
		if width := len([]rune(code[:strings.Index(code, "\n")])) - len(qrColors+qrPlain); width > 80 {
			t.Errorf("%d characters in a line, the usual terminal has 80", width)
		}
		var picture bytes.Buffer
		if err := png.Encode(&picture, painted(t, code, 4)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "code.png")
		if err := os.WriteFile(file, picture.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(zbar, "--quiet", "--raw", file).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != link {
			t.Errorf("%v: read %q, want %q", err, got, link)
		}
	}
}
