package cli

import (
	"strings"

	"rsc.io/qr"
)

const (
	// qrQuiet is the width of the margin that readers need around a code, in modules (ISO/IEC 18004 section 6.3.8).
	qrQuiet = 4

	// Black on white, whatever the colors of the terminal are: not all readers accept an inverted code.
	qrColors = "\x1b[30;107m"
	qrPlain  = "\x1b[0m"
)

// qrCode draws text as a QR code for terminals, in lines that end with a newline. Each character shows two modules, one
// above the other.
func qrCode(text string) (string, error) {
	code, err := qr.Encode(text, qr.L) // the lowest error correction, since a screen is not damaged
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for y := -qrQuiet; y < code.Size+qrQuiet; y += 2 {
		b.WriteString(qrColors)
		for x := -qrQuiet; x < code.Size+qrQuiet; x++ {
			switch upper, lower := code.Black(x, y), code.Black(x, y+1); {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString(qrPlain + "\n")
	}
	return b.String(), nil
}
