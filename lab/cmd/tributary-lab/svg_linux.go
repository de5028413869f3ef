package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// chart is an SVG drawing with two axes and a white background, so that it is legible on any page.
type chart struct {
	title         string
	x, y          axis
	width, height float64 // of the part between the axes
	left          float64 // room for the labels of the y axis
	body          strings.Builder
	legend        []legendEntry
}

// axis maps values to a length; ticks are labelled with the unit.
type axis struct {
	label    string
	from, to float64
}

type legendEntry struct{ text, colour, dash string }

// point is a value on both axes.
type point struct{ x, y float64 }

const (
	topMargin    = 34
	bottomMargin = 46
	legendWidth  = 250
	legendLine   = 18
	noDash       = ""
	dashed       = "6 4"
)

// palette is the palette of Okabe and Ito, whose colours most colour-blind people can distinguish.
var palette = []string{
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8b6f00", "#777777", "#7a0177",
}

func colour(i int) string { return palette[i%len(palette)] }

// ticks returns round values, about n of them, that lie on the axis.
func (a axis) ticks(n int) []float64 {
	span := a.to - a.from
	if span <= 0 || math.IsInf(span, 0) || math.IsNaN(span) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if span/(step*factor) <= float64(n) {
			step *= factor
			break
		}
	}
	var all []float64
	for k := math.Ceil(a.from / step); k*step <= a.to+step*1e-9; k++ {
		all = append(all, k*step)
	}
	return all
}

func (c *chart) px(x float64) float64 {
	return c.left + (x-c.x.from)/(c.x.to-c.x.from)*c.width
}

func (c *chart) py(y float64) float64 {
	return topMargin + c.height - (y-c.y.from)/(c.y.to-c.y.from)*c.height
}

// line draws a line through points and names it in the legend.
func (c *chart) line(name, colour, dash string, points []point) {
	c.legend = append(c.legend, legendEntry{name, colour, dash})
	var path strings.Builder
	for _, p := range points {
		fmt.Fprintf(&path, "%.1f,%.1f ", c.px(p.x), c.py(p.y))
	}
	fmt.Fprintf(&c.body,
		`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-dasharray="%s"/>`+"\n",
		strings.TrimSpace(path.String()), colour, dash)
}

// rect draws a filled rectangle between two corners.
func (c *chart) rect(a, b point, colour string, opacity float64) {
	x, y := min(c.px(a.x), c.px(b.x)), min(c.py(a.y), c.py(b.y))
	fmt.Fprintf(&c.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="%g"/>`+"\n",
		x, y, max(1, math.Abs(c.px(b.x)-c.px(a.x))), math.Abs(c.py(b.y)-c.py(a.y)), colour, opacity)
}

// rule draws a straight line.
func (c *chart) rule(a, b point, colour string, width float64) {
	fmt.Fprintf(&c.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>`+"\n",
		c.px(a.x), c.py(a.y), c.px(b.x), c.py(b.y), colour, width)
}

func (c *chart) dot(p point, colour string) {
	fmt.Fprintf(&c.body, `<circle cx="%.1f" cy="%.1f" r="2.2" fill="%s"/>`+"\n", c.px(p.x), c.py(p.y), colour)
}

// rowLabel writes a text to the left of the y axis, for charts whose rows have names instead of ticks.
func (c *chart) rowLabel(y float64, text string) {
	c.text(c.left-8, c.py(y)+4, "end", text)
}

func (c *chart) text(x, y float64, anchor, text string) {
	fmt.Fprintf(&c.body, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(text))
}

// svg returns the drawing. An axis without a label has no ticks.
func (c *chart) svg() string {
	drawn := c.body.String()
	c.body.Reset()
	right, bottom := c.left+c.width, topMargin+c.height
	if c.x.label != "" {
		for _, v := range c.x.ticks(10) {
			c.rule(point{v, c.y.from}, point{v, c.y.to}, "#e4e4e4", 1)
			c.text(c.px(v), bottom+16, "middle", number(v))
		}
		c.text(c.left+c.width/2, bottom+36, "middle", c.x.label)
	}
	if c.y.label != "" {
		for _, v := range c.y.ticks(8) {
			c.rule(point{c.x.from, v}, point{c.x.to, v}, "#e4e4e4", 1)
			c.text(c.left-8, c.py(v)+4, "end", number(v))
		}
		fmt.Fprintf(&c.body, `<text transform="translate(14 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
			topMargin+c.height/2, html.EscapeString(c.y.label))
	}
	c.body.WriteString(drawn)
	fmt.Fprintf(&c.body, `<rect x="%.1f" y="%d" width="%.1f" height="%.1f" fill="none" stroke="#333333"/>`+"\n",
		c.left, topMargin, c.width, c.height)
	for i, e := range c.legend {
		y := topMargin + 8 + float64(i)*legendLine
		fmt.Fprintf(&c.body,
			`<polyline points="%.1f,%.1f %.1f,%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n",
			right+14, y, right+38, y, e.colour, e.dash)
		c.text(right+44, y+4, "start", e.text)
	}
	total := right + 20
	if len(c.legend) > 0 {
		total = right + legendWidth
	}
	height := bottom + bottomMargin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" `+
		`font-family="Helvetica, Arial, sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
<text x="%.1f" y="20" font-size="14">%s</text>
%s</svg>
`, total, height, total, height, c.left, html.EscapeString(c.title), c.body.String())
}

// number prints a tick's value without the noise of binary fractions.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) }
