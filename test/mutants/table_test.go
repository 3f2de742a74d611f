//go:build mutants

package mutants_test

import (
	"fmt"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what has found a mutant.
type result struct {
	mutant        mutant
	named, beside finding
}

// finding is what a test has found, empty if nothing, and what it has cost, with compiling.
type finding struct {
	by   string
	cost cost
}

// cost is how long a processor has worked. On a busy machine it says more than a clock.
type cost time.Duration

func (c *cost) add(ended *exec.Cmd) {
	*c += cost(ended.ProcessState.UserTime() + ended.ProcessState.SystemTime())
}

func (c cost) seconds() float64 { return time.Duration(c).Seconds() }

// cells are the two columns of a finding.
func (f finding) cells() string {
	if f.by == "" {
		return fmt.Sprintf("NOT FOUND\t%.0f", f.cost.seconds())
	}
	return fmt.Sprintf("%s\t%.0f", f.by, f.cost.seconds())
}

// totals are what a table counts.
type totals struct {
	tried, named, beside int
	cost                 cost
}

func (sum *totals) add(r result) {
	sum.tried++
	sum.cost += r.named.cost + r.beside.cost
	if r.named.by != "" {
		sum.named++
	}
	if r.beside.by != "" {
		sum.beside++
	}
}

// table has a line for each mutant that was tried, and ends with the totals. Its seconds are those
// of a processor.
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
		sum.tried, sum.named, sum.beside, sum.cost.seconds()/60)
	return out.String()
}
