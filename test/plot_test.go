package test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Sizes of the plots, in pixels.
const (
	plotLabels, plotPanel, plotGap = 262, 180, 36
	plotRow                        = 26
	plotEnd                        = plotLabels + 3*(plotPanel+plotGap) + 16
)

// The plots of docs/performance.md have the figures of the page: make golden writes them anew.
func TestThePlotOfThePerformancePageShowsItsTable(t *testing.T) {
	const page = "docs/performance.md"
	_, cells := rows(t, page, "| claims per second |")
	var names []string
	rates := make([][]string, 3)
	for _, row := range cells {
		if row[3] == "–" {
			continue
		}
		name, _, _ := strings.Cut(row[0], ":")
		names = append(names, name)
		for panel, column := range []int{1, 3, 5} {
			rates[panel] = append(rates[panel], strings.Trim(row[column], "*"))
		}
	}
	takes := regexp.MustCompile(`after ([\d.]+) s \(p50\)\. local-path-provisioner takes ([\d.]+) s`)
	one := takes.FindStringSubmatch(strings.Join(strings.Fields(content(t, page)), " "))
	if one == nil {
		t.Fatal("the page does not say what one claim takes")
	}
	second := 100 + plotRow*len(names)
	const rate = "Claims bound a second, by the requests a second that " +
		"kube-controller-manager may send"
	const seconds = "One claim: seconds until it is bound (p50)"
	out := picture(t, plotEnd, second+134, rate+". "+seconds+".") + words(20, 32, "h", rate)
	for panel, title := range []string{"stock: 20", "raised: 200", "max: 2,000"} {
		out += plot{panel, 62, title, names, rates[panel]}.draw(t)
	}
	single := plot{0, second + 42, "", []string{"local-path-provisioner", "ours, by bash"}, one[1:]}
	slices.Reverse(single.figures)
	out += words(20, second+30, "h", seconds) + single.draw(t)
	mustBePicture(t, "docs/performance.svg", out+"\n</svg>\n")
}

// plot has a bar for each figure, and a scale of its own. The first one of a row has the names.
type plot struct {
	panel, top     int
	title          string
	names, figures []string
}

func (p plot) draw(t *testing.T) string {
	t.Helper()
	left, bottom := plotLabels+p.panel*(plotPanel+plotGap), p.top+8+plotRow*len(p.names)
	rates, highest := make([]float64, len(p.figures)), 0.0
	for i, figure := range p.figures {
		rate, err := strconv.ParseFloat(figure, 64)
		if err != nil {
			t.Fatal(err)
		}
		rates[i], highest = rate, max(highest, rate)
	}
	step := stepOf(highest)
	out := words(left, p.top, "b", p.title)
	for tick := range 5 {
		x := left + tick*plotPanel/4
		out += fmt.Sprintf("\n"+`<path class="line thin" d="M%d %d V%d"/>`, x, p.top+8, bottom) +
			words(x, bottom+16, "m s", strconv.FormatFloat(float64(tick)*step, 'g', -1, 64))
	}
	for i, rate := range rates {
		y, width := p.top+12+plotRow*i, rate/(4*step)*plotPanel
		out += fmt.Sprintf("\n"+`<rect class="bar %s" x="%d" y="%d" width="%.1f" height="18"/>`,
			colourOf(p.names[i]), left, y, width) + words(left+int(width)+5, y+14, "", p.figures[i])
		if p.panel == 0 {
			out += words(left-10, y+14, "e", p.names[i])
		}
	}
	return out
}

// stepOf returns the least round number of which four reach a figure.
func stepOf(highest float64) float64 {
	for unit := 1.0; ; unit *= 10 {
		for _, step := range []float64{unit, 2 * unit, 2.5 * unit, 5 * unit} {
			if 4*step >= highest {
				return step
			}
		}
	}
}

// colourOf is the class of a bar.
func colourOf(name string) string {
	switch {
	case strings.HasPrefix(name, "ours"):
		return "ours"
	case strings.Contains(name, "tuned"), strings.Contains(name, "local-path"):
		return "yours"
	}
	return "kube" // what nothing that provisions can exceed
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
