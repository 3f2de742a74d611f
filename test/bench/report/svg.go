package report

import (
	"fmt"
	"html"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// Sizes of the plot, in pixels.
const (
	svgWidth, panelHeight = 1000.0, 320.0
	left, right           = 60.0, 280.0
	top, bottom           = 40.0, 40.0
	legendStep            = 16.0
)

// colours of the rows, in their order.
var colours = []string{
	"#000000", "#7f7f7f", "#9467bd", "#c5b0d5", "#1f77b4", "#17becf", "#8c564b", "#ff9896", "#ff7f0e", "#d62728", "#2ca02c",
	"#aec7e8", "#9edae5", "#c49c94", "#ffbb78",
}

// SVG plots for each column how many claims were bound, over time.
func SVG(r Results) string {
	var panels strings.Builder
	count := 0
	for _, column := range plan.Columns {
		lines := linesOf(r, column)
		if len(lines) == 0 {
			continue
		}
		panels.WriteString(panel(column, lines, float64(count)*panelHeight))
		count++
	}
	height := float64(max(count, 1)) * panelHeight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%s</svg>\n", svgWidth, height, panels.String())
}

// line is the curve of one row.
type line struct {
	title, colour string
	done          []float64
}

func linesOf(r Results, column plan.Column) []line {
	var out []line
	for i, row := range plan.Rows {
		if p := r.provision(column, row.Name); p != nil && len(p.Done) > 0 {
			out = append(out, line{row.Title, colours[i%len(colours)], p.Done})
		}
	}
	return out
}

// panel plots the lines of one column.
func panel(column plan.Column, lines []line, y float64) string {
	seconds, claims := extent(lines)
	var out strings.Builder
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(&out, format+"\n", args...) }
	write(`<g transform="translate(0 %g)">`, y)
	write(`<text x="%g" y="20" font-weight="bold">%s: claims bound over time</text>`, left, html.EscapeString(string(column)))
	write(`<path d="M%g %g V%g H%g" fill="none" stroke="#000"/>`, left, top, panelHeight-bottom, svgWidth-right)
	write(`<text x="%g" y="%g" text-anchor="end">%g</text>`, left-6, top+6, claims)
	write(`<text x="%g" y="%g" text-anchor="end">%s s</text>`, svgWidth-right, panelHeight-bottom+16, number(seconds))
	for i, l := range lines {
		write(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, curve(l.done, seconds, claims), l.colour)
		write(`<text x="%g" y="%g" fill="%s">%s</text>`, svgWidth-right+12, top+float64(i)*legendStep+6, l.colour, html.EscapeString(l.title))
	}
	write("</g>")
	return out.String()
}

// extent returns the longest time and the largest number of claims of the lines.
func extent(lines []line) (seconds, claims float64) {
	for _, l := range lines {
		seconds = max(seconds, l.done[len(l.done)-1])
		claims = max(claims, float64(len(l.done)))
	}
	return max(seconds, 0.001), max(claims, 1)
}

// mostPoints of a curve: more are not seen.
const mostPoints = 200

// curve returns the path of a row. Every claim is a step of one, of which only so many are drawn.
func curve(done []float64, seconds, claims float64) string {
	x := func(s float64) float64 { return left + s/seconds*(svgWidth-left-right) }
	y := func(n int) float64 { return panelHeight - bottom - float64(n)/claims*(panelHeight-top-bottom) }
	out := []string{fmt.Sprintf("M%.1f %.1f", x(0), y(0))}
	step := max(1, len(done)/mostPoints)
	for i := 0; i < len(done); i += step {
		out = append(out, fmt.Sprintf("L%.1f %.1f", x(done[i]), y(i+1)))
	}
	return strings.Join(append(out, fmt.Sprintf("L%.1f %.1f", x(done[len(done)-1]), y(len(done)))), " ")
}
