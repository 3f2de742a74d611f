package memory_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// scaleTarget is what a measured value may be at most.
type scaleTarget struct {
	name           string
	most, measured float64
}

// scaleTargets are those of the largest cluster.
func scaleTargets(largest scale) []scaleTarget {
	return []scaleTarget{
		{"ready, seconds from the start", 15, largest.Ready},
		{"the first Job of a waiting claim, seconds from the start", 15, largest.Served},
		{"CPU of a leader without work, percent of a core", 0.5, largest.Idle},
		{"CPU of another replica, percent of a core", 0.5, largest.StandbyIdle},
		{"the next Job, seconds from the leader's death", 20, largest.Death},
		{"the next Job, seconds from a clean stop", 2, largest.Stop},
	}
}

// figures are those that are compared with another commit's.
func (s scale) figures() map[string]float64 {
	return map[string]float64{report.Ready: s.Ready, report.FirstJob: s.Served, report.AfterDeath: s.Death, report.AfterStop: s.Stop}
}

func scaleTable(all []scale) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%8s %9s %12s %11s %11s %10s %9s %10s\n", "claims", "ready s", "first Job s", "CPU s", "next Job s", "idle CPU %", "RSS MiB", "peak MiB")
	for _, one := range all {
		fmt.Fprintf(&out, "%8d %9.2f %12.2f %11.2f %11.3f %10.2f %9d %10d\n", one.Claims, one.Ready, one.Served, one.StartCPU, one.Next, one.Idle, one.RSS, one.Peak)
	}
	return out.String()
}

func scaleJSON(t *testing.T, all []scale) []byte {
	t.Helper()
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// Sizes of the plot, in pixels.
const (
	plotWidth, plotHeight = 720.0, 220.0
	plotLeft, plotRight   = 60.0, 20.0
	plotTop, plotBottom   = 34.0, 34.0
)

// plot is one of the panels: what was measured over the number of claims, both on scales of their
// own.
type plot struct {
	title string
	lines []plotLine
}

type plotLine struct {
	name, colour string
	value        func(scale) float64
}

var plots = []plot{
	{"seconds from the start", []plotLine{
		{"ready", "#1f77b4", func(s scale) float64 { return s.Ready }}, {"first Job", "#d62728", func(s scale) float64 { return s.Served }},
	}},
	{"CPU without work, percent of a core", []plotLine{{"leader", "#2ca02c", func(s scale) float64 { return s.Idle }}}},
	{"memory, MiB", []plotLine{
		{"RSS at rest", "#9467bd", func(s scale) float64 { return float64(s.RSS) }}, {"peak", "#8c564b", func(s scale) float64 { return float64(s.Peak) }},
	}},
}

// scaleSVG plots what was measured over the number of claims, which are on a logarithmic scale.
func scaleSVG(all []scale) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight*float64(len(plots)))
	out.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, p := range plots {
		fmt.Fprintf(&out, `<g transform="translate(0 %g)">`+"\n%s</g>\n", plotHeight*float64(i), p.svg(all))
	}
	return out.String() + "</svg>\n"
}

// svg returns a panel. Its highest value is at its top.
func (p plot) svg(all []scale) string {
	highest := 0.0
	for _, l := range p.lines {
		for _, one := range all {
			highest = max(highest, l.value(one))
		}
	}
	first, last := math.Log(float64(all[0].Claims)), math.Log(float64(all[len(all)-1].Claims))
	x := func(one scale) float64 {
		return plotLeft + (math.Log(float64(one.Claims))-first)/(last-first)*(plotWidth-plotLeft-plotRight)
	}
	y := func(value float64) float64 {
		return plotHeight - plotBottom - value/max(highest, 0.001)*(plotHeight-plotTop-plotBottom)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<text x="%g" y="16" font-weight="bold">%s</text>`+"\n", plotLeft, p.title)
	fmt.Fprintf(&out, `<path d="M%g %g V%g H%g" fill="none" stroke="#000"/>`+"\n", plotLeft, plotTop, plotHeight-plotBottom, plotWidth-plotRight)
	fmt.Fprintf(&out, `<text x="%g" y="%g" text-anchor="end">%.3g</text>`+"\n", plotLeft-6, plotTop+4, highest)
	for _, one := range all {
		fmt.Fprintf(&out, `<text x="%.1f" y="%g" text-anchor="middle">%d</text>`+"\n", x(one), plotHeight-plotBottom+16, one.Claims)
	}
	for i, l := range p.lines {
		path := ""
		for j, one := range all {
			path += fmt.Sprintf("%s%.1f %.1f ", map[bool]string{true: "M", false: "L"}[j == 0], x(one), y(l.value(one)))
		}
		fmt.Fprintf(&out, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.TrimSpace(path), l.colour)
		fmt.Fprintf(&out, `<text x="%g" y="%g" fill="%s">%s</text>`+"\n", plotLeft+12+float64(i)*90, plotTop+4, l.colour, l.name)
	}
	return out.String()
}
