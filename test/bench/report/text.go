package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// number formats a number with three digits, or as many as it has before the point.
func number(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	default:
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
}

// measured formats a number that is 0 if it was not measured.
func measured(n float64) string {
	if n == 0 {
		return "–"
	}
	return number(n)
}

// table aligns rows of cells. The first row is the header.
func table(title string, rows [][]string) string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(columns, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = columns.Flush() // a strings.Builder
	return title + "\n\n" + out.String() + "\n"
}

// Text formats a run for people.
func Text(r Results) string {
	return rates(r) + spreads(r) + TargetTable(Targets(r)) + Figures(r) + times(r) + requests(r) + usage(r) + failures(r)
}

// rates is the table of all rows: claims a second, bound and deleted.
func rates(r Results) string {
	header := []string{"claims a second"}
	for _, column := range plan.Columns {
		header = append(header, string(column)+" bound", "deleted")
	}
	rows := [][]string{header}
	for _, row := range plan.Rows {
		line := []string{row.Title}
		for _, column := range plan.Columns {
			line = append(line, measured(r.provision(column, row.Name).Rate()), measured(r.remove(column, row.Name).Rate()))
		}
		rows = append(rows, line)
	}
	return table("Rates", rows)
}

// spreads is the table of the cells that were measured several times.
func spreads(r Results) string {
	rows := [][]string{{"cell", "bound a second", "deleted a second"}}
	for _, one := range r {
		if len(one.Bound) > 0 {
			rows = append(rows, []string{string(one.Column) + "/" + one.Row, numbers(one.Bound), numbers(one.Deleted)})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return table("Measured several times: every run, of which the median is above", rows)
}

func numbers(all []float64) string {
	var out []string
	for _, one := range all {
		out = append(out, measured(one))
	}
	return strings.Join(out, " ")
}

// TargetTable says what of the targets was met.
func TargetTable(all []Target) string {
	rows := [][]string{{"about", "target", "", "wanted", "measured", "ratio", "result"}}
	for _, t := range all {
		kind := "aim"
		if t.Must {
			kind = "must"
		}
		rows = append(rows, []string{string(t.Topic), t.What, kind, number(t.Want), number(t.Measured), measured(t.Ratio), string(t.Result)})
	}
	return table("Targets", rows)
}

// Figures is the table of the cells without phases.
func Figures(r Results) string {
	rows := [][]string{{"cell", "claims", "figures"}}
	for _, one := range r {
		var figures []string
		for _, name := range slices.Sorted(maps.Keys(one.Figures)) {
			figures = append(figures, name+" "+number(one.Figures[name]))
		}
		if len(figures) > 0 {
			rows = append(rows, []string{one.name(), strconv.Itoa(one.Claims), strings.Join(figures, ", ")})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return table("In a large cluster", rows)
}

// times says how long one claim of the burst took.
func times(r Results) string {
	rows := [][]string{{"cell", "claims", "created in s", "bound p50 s", "p95 s", "deleted p50 s", "p95 s"}}
	for _, one := range r {
		if one.Provision == nil || len(one.Provision.Asked) == 0 {
			continue
		}
		rows = append(rows, []string{
			one.name(), strconv.Itoa(one.Claims), number(one.Provision.Asked[len(one.Provision.Asked)-1]),
			number(one.Provision.Quantile(0.5)), number(one.Provision.Quantile(0.95)),
			measured(one.Delete.Quantile(0.5)), measured(one.Delete.Quantile(0.95)),
		})
	}
	return table("Times of one claim in the burst", rows) + steps(r)
}

func (r Result) name() string { return string(r.Column) + "/" + r.Row }

// requests says what each actor asked for, for each claim.
func requests(r Results) string {
	var out strings.Builder
	for _, one := range r {
		for _, part := range []struct {
			verb  string
			phase *Phase
		}{{"provision", one.Provision}, {"delete", one.Delete}} {
			if part.phase != nil && len(part.phase.Requests) > 0 {
				out.WriteString(requestsOf(one.name()+" "+part.verb, part.phase))
			}
		}
	}
	return out.String()
}

// rare requests, for each claim, are not listed: what is sent once does not depend on the claims.
const rare = 0.02

func requestsOf(title string, p *Phase) string {
	rows := [][]string{{"actor", "requests", "writes", "reads", "events", "409", "which"}}
	for _, actor := range p.actors() {
		total := p.perClaim(actor, func(c audit.Count) int { return c.N })
		if total < rare {
			continue
		}
		rows = append(rows, []string{
			actor, number(total), number(p.perClaim(actor, only(audit.Count.IsWrite))), number(p.perClaim(actor, only(audit.Count.IsRead))),
			number(p.perClaim(actor, only(audit.Count.IsEvent))), number(p.perClaim(actor, func(c audit.Count) int { return c.Conflicts })), p.most(actor),
		})
	}
	return table("Requests for each claim: "+title, rows)
}

// most names an actor's requests, the most frequent first.
func (p *Phase) most(actor string) string {
	counts := slices.DeleteFunc(slices.Clone(p.Requests), func(c audit.Count) bool {
		return c.Actor != actor || float64(c.N) < rare*float64(len(p.Done))
	})
	slices.SortStableFunc(counts, func(a, b audit.Count) int { return cmp.Compare(b.N, a.N) })
	var out []string
	for _, c := range counts {
		out = append(out, fmt.Sprintf("%s %s %s", c.Verb, c.Resource, number(float64(c.N)/float64(len(p.Done)))))
	}
	return strings.Join(out, ", ")
}

// components are the processes of the control plane.
var components = []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"}

// usage says what a claim costs, in CPU time and requests: what a cluster with more processors, where
// the rates are higher, sees as well.
func usage(r Results) string {
	header := slices.Concat([]string{"for each claim, CPU in ms", "requests", "CPU"}, components, []string{Provisioner, "RSS MiB", "peak MiB"})
	rows := [][]string{header}
	for _, one := range r {
		for _, of := range []struct {
			verb  string
			phase *Phase
		}{{"bound", one.Provision}, {"deleted", one.Delete}} {
			if of.phase != nil {
				rows = append(rows, of.phase.usage(one.name()+" "+of.verb))
			}
		}
	}
	return table("Requests, CPU time, and memory of the provisioner", rows)
}

// usage returns the row of a phase.
func (p *Phase) usage(title string) []string {
	line := []string{title, measured(p.allRequests()), measured(p.allCPU())}
	for _, component := range append(components, Provisioner) {
		line = append(line, measured(p.CPU(component)))
	}
	rss, peak := p.memory()
	return append(line, measured(rss), measured(peak))
}

// Provisioner is the name of the processes of a row's provisioner.
const Provisioner = "provisioner"

// memory returns what the provisioner's processes use together, now and at most.
func (p *Phase) memory() (rss, peak float64) {
	for _, process := range p.Processes {
		if process.Name == Provisioner {
			rss += process.RSS
			peak += process.Peak
		}
	}
	return rss, peak
}

func failures(r Results) string {
	rows := [][]string{{"cell", "error"}}
	for _, one := range r {
		if one.Error != "" {
			rows = append(rows, []string{one.name(), one.Error})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return table("Not measured to the end", rows)
}

// Summary is the last line of a run.
func Summary(r Results) string {
	var must, missed, unmeasured int
	for _, t := range Targets(r) {
		if !t.Must {
			continue
		}
		must++
		switch t.Result {
		case Missed:
			missed++
		case Unmeasured:
			unmeasured++
		case Met:
		}
	}
	return fmt.Sprintf("%d targets have to be met: %d are met, %d are missed, %d were not measured", must, must-missed-unmeasured, missed, unmeasured)
}
