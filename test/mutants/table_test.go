//go:build mutants

package mutants_test

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what has found a mutant.
type result struct {
	mutant        mutant
	named, beside finding
}

// finding is what a test has found, empty if nothing, and how long it has used a processor, to be compiled, too.
type finding struct {
	by   string
	used time.Duration
}

// cells are the two columns of a finding.
func (f finding) cells() string {
	if f.by == "" {
		return fmt.Sprintf("NOT FOUND\t%.0f", f.used.Seconds())
	}
	return fmt.Sprintf("%s\t%.0f", f.by, f.used.Seconds())
}

// totals are what a table counts.
type totals struct {
	tried, named, beside int
	used                 time.Duration
}

func (sum *totals) add(r result) {
	sum.tried++
	sum.used += r.named.used + r.beside.used
	if r.named.by != "" {
		sum.named++
	}
	if r.beside.by != "" {
		sum.beside++
	}
}

// table has a line for each mutant that was tried, and ends with the totals. Its seconds are those of a processor.
func table(results []result) string {
	var out strings.Builder
	columns, sum := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0), totals{}
	fmt.Fprintln(columns, "mutant\tnamed test\tseconds\tmodel or simulation\tseconds")
	for _, r := range results {
		if r.mutant.Name == "" {
			continue
		}
		sum.add(r)
		other := "-\t-"
		if r.mutant.Beside != "" {
			other = r.beside.cells()
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\n", r.mutant.Name, r.named.cells(), other)
	}
	columns.Flush()
	fmt.Fprintf(&out, "%d mutants: %d are found by the tests that are named for them, %d by model or simulation without these; %.0f min of a processor\n",
		sum.tried, sum.named, sum.beside, sum.used.Minutes())
	return out.String()
}
