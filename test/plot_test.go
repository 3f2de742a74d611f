package test

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Sizes of the plot, in pixels.
const (
	plotLabels, plotPanel, plotGap = 230, 150.0, 50
	plotTop, plotRow               = 56, 26
)

// The plot of docs/performance.md has the figures of its table: make golden writes it anew.
func TestThePlotOfThePerformancePageShowsItsTable(t *testing.T) {
	_, cells := rows(t, "docs/performance.md", "| claims per second |")
	const file = "docs/performance.svg"
	want := plot(t, cells)
	if *update {
		if err := os.WriteFile(filepath.Join(repository, file), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if content(t, file) != want {
		t.Errorf("%s does not show the table of docs/performance.md: make golden", file)
	}
}

// plot draws a bar for each rate at which claims were bound, of the rows that have one in every
// column.
func plot(t *testing.T, cells [][]string) string {
	t.Helper()
	var bars strings.Builder
	count, highest := 0, 100.0
	for _, row := range cells {
		if row[3] == "–" {
			continue
		}
		y := plotTop + count*plotRow
		name, _, _ := strings.Cut(row[0], ":")
		fmt.Fprintf(&bars, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLabels-8, y+14, html.EscapeString(name))
		for panel, column := range []int{1, 3, 5} {
			figure := strings.Trim(row[column], "*")
			rate, err := strconv.ParseFloat(figure, 64)
			if err != nil || rate > highest {
				t.Fatalf("%s: %q is no rate up to %g", row[0], figure, highest)
			}
			x, width := panelAt(panel), rate/highest*plotPanel
			fmt.Fprintf(&bars, `<rect x="%d" y="%d" width="%.1f" height="18" fill="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
				x, y, width, colourOf(row[0]), float64(x)+width+4, y+14, figure)
		}
		count++
	}
	bottom := plotTop + count*plotRow
	for panel, title := range []string{"stock: 20", "raised: 200", "max: 2,000"} {
		x := panelAt(panel)
		fmt.Fprintf(&bars, `<text x="%d" y="44" font-weight="bold">%s</text><path d="M%d 52 V%d" stroke="#334155"/>`+"\n", x, title, x, bottom)
	}
	width := panelAt(3) + 16
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="14">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n"+
		`<text x="16" y="22" font-weight="bold" font-size="15">Claims bound a second, by the requests a second that kube-controller-manager may send</text>`+"\n%s</svg>\n",
		width, bottom+16, bars.String())
}

func panelAt(panel int) int { return plotLabels + panel*(int(plotPanel)+plotGap) }

func colourOf(row string) string {
	switch {
	case strings.HasPrefix(row, "ours"):
		return "#1d4ed8"
	case strings.Contains(row, "tuned"):
		return "#f59e0b"
	}
	return "#94a3b8" // what nothing that provisions can exceed
}

// What a thousand claims take is computed from the rates.
func TestTheSecondsOfAThousandClaimsFollowFromTheRates(t *testing.T) {
	_, rates := rows(t, "docs/performance.md", "| claims per second |")
	_, times := rows(t, "docs/performance.md", "| 1,000 claims |")
	byRow := map[string][]string{}
	for _, row := range rates {
		byRow[row[0]] = row
	}
	for _, row := range times {
		for i := 1; i < len(row); i++ {
			if byRow[row[0]] == nil {
				t.Fatalf("no row has the rates of %s", row[0])
			}
			rate, err := strconv.ParseFloat(strings.Trim(byRow[row[0]][i], "*"), 64)
			if err != nil {
				t.Fatal(err)
			}
			if want := minutes(1000 / rate); row[i] != want {
				t.Errorf("%s, column %d: %q, want %q by the rate %g", row[0], i, row[i], want, rate)
			}
		}
	}
}

func minutes(seconds float64) string {
	all := int(seconds + 0.5)
	if all < 60 {
		return fmt.Sprintf("%d s", all)
	}
	return fmt.Sprintf("%d min %d s", all/60, all%60)
}
