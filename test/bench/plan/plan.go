package plan

import (
	"fmt"
	"slices"
	"strconv"
)

// Column is a setting of kube-controller-manager. Its limit on requests caps every provisioner.
type Column string

// The columns of the table.
const (
	Stock  Column = "stock"
	Raised Column = "raised"
	Max    Column = "max"
)

// Columns are all columns, in the order of the table.
var Columns = []Column{Stock, Raised, Max}

// unplayed keeps the nodes Ready: no kubelet renews their leases.
const unplayed = "--node-monitor-grace-period=2h"

// Controllers returns the flags of kube-controller-manager.
func (c Column) Controllers() string {
	switch c {
	case Raised:
		return unplayed + " --kube-api-qps=200 --kube-api-burst=400 --concurrent-job-syncs=20"
	case Max:
		return unplayed + " --kube-api-qps=2000 --kube-api-burst=4000 --concurrent-job-syncs=50"
	default:
		return unplayed
	}
}

// Scheduler returns the flags of kube-scheduler.
func (c Column) Scheduler() string {
	switch c {
	case Raised:
		return "--kube-api-qps=200 --kube-api-burst=400"
	case Max:
		return "--kube-api-qps=2000 --kube-api-burst=4000"
	default:
		return ""
	}
}

// Kind is what provisions.
type Kind string

// The kinds of rows.
const (
	Floor     Kind = "floor"
	Ceiling   Kind = "ceiling"
	Jobs      Kind = "jobs"
	Ours      Kind = "ours"
	CSI       Kind = "csi"
	LocalPath Kind = "local-path"
	Library   Kind = "library"
)

// Row is one provisioner with its settings.
type Row struct {
	Name, Title string
	Kind        Kind
	// Batch is our batch-size.
	Batch int
	// MaxParallel is our max-parallel.
	MaxParallel int
	// Class is the class of a recipe, as it is shipped. hack/bench.sh or hack/deploy.sh applies it.
	Class string
	// Base is set for the dispatcher of another commit (BENCH_BASE).
	Base bool
	// AtOnce deletes a claim that comes alone as soon as it is bound, when its provision's pod has not
	// ended. Otherwise its deletion begins when all is idle.
	AtOnce bool
	// Tuned raises the provisioner's own limits. Without it, it runs as its users get it.
	Tuned bool
}

// Rows are all rows, in the order of the table. A container of a batch writes PVs one after the
// other, faster than kube-controller-manager binds them. So one or a few at a time are enough where
// the storage takes no time: more take the API server's time from the binder.
var Rows = []Row{
	{Name: "floor", Title: "floor: PVs pre-bound by a loop", Kind: Floor},
	{Name: "jobs", Title: "bare Jobs (no PV)", Kind: Jobs},
	{Name: "ceiling", Title: "ceiling: one request a claim, annotation awaited", Kind: Ceiling},
	{Name: "csi", Title: "csi external-provisioner, tuned", Kind: CSI, Tuned: true},
	{Name: "library", Title: "sig-storage library, tuned", Kind: Library, Tuned: true},
	{Name: "local-path", Title: "local-path-provisioner, tuned", Kind: LocalPath, Tuned: true},
	{Name: "ours-1", Title: "ours, batch 1", Kind: Ours, Batch: 1, MaxParallel: 200, Tuned: true},
	{Name: "ours-16", Title: "ours, batch 16", Kind: Ours, Batch: 16, MaxParallel: 4, Tuned: true},
	{Name: "ours-64", Title: "ours, batch 64", Kind: Ours, Batch: 64, MaxParallel: 1, Tuned: true},
	{Name: "recipe", Title: "ours, the recipe nfs as shipped", Kind: Ours, Class: "nfs", Tuned: true},
	{Name: "base-1", Title: "ours of BENCH_BASE, batch 1", Kind: Ours, Batch: 1, MaxParallel: 200, Tuned: true, Base: true},
	{Name: "csi-default", Title: "csi external-provisioner, defaults", Kind: CSI},
	{Name: "library-default", Title: "sig-storage library, defaults", Kind: Library},
	{Name: "local-path-default", Title: "local-path-provisioner, defaults", Kind: LocalPath},
	{Name: "ours-default", Title: "ours, defaults", Kind: Ours, Batch: 1, MaxParallel: 20},
}

// One is the column of claims that come one after the other, on a node with a kubelet.
const One Column = "one"

// Singles are the rows of that column.
var Singles = []Row{
	{Name: "one-ours", Title: "ours, a bash image", Kind: Ours, Class: "node-directory"},
	{Name: "one-ours-at-once", Title: "ours, a bash image, deleted as soon as it is bound", Kind: Ours, Class: "node-directory", AtOnce: true},
	{Name: "one-cinder", Title: "ours, a real Cinder", Kind: Ours, Class: "cinder-iscsi"},
	{Name: "one-local-path", Title: "local-path-provisioner, defaults", Kind: LocalPath},
	{Name: "one-jobs", Title: "bare Jobs of the bash image (no PV)", Kind: Jobs},
	{Name: "one-floor", Title: "PVs pre-bound by a loop", Kind: Floor},
}

// claimsOne is how many claims come one after the other.
const claimsOne = 20

// Columns of what a dispatcher needs in a cluster with many claims, which test/memory measures.
const (
	Memory Column = "memory"
	Scale  Column = "scale"
)

// Large are the rows of the column memory. The column scale has those that are ours.
var Large = []Row{
	{Name: "ours", Title: "ours", Kind: Ours},
	{Name: "base", Title: "ours of BENCH_BASE", Kind: Ours, Base: true},
	{Name: "csi", Title: "csi external-provisioner, defaults", Kind: CSI},
}

// claimsLarge is how many claims such a cluster has.
const claimsLarge = 100_000

// RowOf returns the row of a name.
func RowOf(name string) (Row, error) {
	all := slices.Concat(Rows, Singles)
	if i := slices.IndexFunc(all, func(r Row) bool { return r.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Row{}, fmt.Errorf("there is no row %q", name)
}

// Deletes reports whether the row deletes what it has made.
func (r Row) Deletes() bool { return r.Kind != Ceiling && r.Kind != Jobs }

// IsPeer reports whether the row needs a program of another project.
func (r Row) IsPeer() bool { return r.Kind == CSI || r.Kind == LocalPath || r.Kind == Library }

// usesDefaults reports whether the row is a provisioner as its users get it.
func (r Row) usesDefaults() bool { return r.Kind != Floor && r.Deletes() && !r.Tuned }

// Cell is one measurement: so many claims, in a cluster of its own.
type Cell struct {
	Column Column
	Row    Row
	Claims int
	// Run is 1, or more where the cell is measured again.
	Run int
}

// Name is the cell's in messages and on the command line.
func (c Cell) Name() string { return string(c.Column) + "/" + c.Row.Name }

// File is the name of the file of its result.
func (c Cell) File() string {
	name := string(c.Column) + "-" + c.Row.Name
	if c.Run > 1 {
		name += "-" + strconv.Itoa(c.Run)
	}
	return name + ".json"
}

// runs is how often a cell is measured on which a comparison rests: where the processors are the
// limit, one of three runs is half as fast as the others for reasons that are not on the machine.
// With the defaults of kube-controller-manager its events about claims whose volumes it awaits are
// repeated every 15 s, and how many of them fall into a run differs.
const runs = 3

// compared are the rows on which the comparisons rest in every column, comparedRaised those on
// which more rest in that one.
var (
	compared       = []string{"csi", "ours-64"}
	comparedRaised = []string{"recipe", "ours-1", "base-1"}
)

// isRepeated reports whether the cell is measured several times.
func (c Cell) isRepeated() bool {
	return slices.Contains(compared, c.Row.Name) && c.Column != Memory ||
		c.Column == Raised && slices.Contains(comparedRaised, c.Row.Name)
}

// again returns the further runs of those cells, each after one of all the others.
func again(cells []Cell) []Cell {
	var out []Cell
	for run := 2; run <= runs; run++ {
		for _, cell := range cells {
			if cell.isRepeated() {
				cell.Run = run
				out = append(out, cell)
			}
		}
	}
	return out
}

// How many claims a cell gets.
const (
	claimsStock    = 200
	claimsDefaults = 50
	claimsCompared = 800
	claimsOther    = 400
	claimsQuick    = 200
)

// quick are the cells of a quick run.
var quick = []struct {
	column Column
	row    string
	claims int
}{
	{Stock, "csi", claimsDefaults},
	{Stock, "recipe", claimsDefaults},
	{Raised, "floor", claimsQuick},
	{Raised, "csi", claimsQuick},
	{Raised, "ours-1", claimsQuick},
	{Raised, "base-1", claimsQuick},
	{Raised, "recipe", claimsQuick},
}

// Cells returns what is measured, in order.
func Cells(isQuick bool) []Cell {
	if !isQuick {
		return whole()
	}
	var out []Cell
	for _, q := range quick {
		row, err := RowOf(q.row)
		if err == nil {
			out = append(out, Cell{Column: q.column, Row: row, Claims: q.claims, Run: 1})
		}
	}
	return out
}

func whole() []Cell {
	var out []Cell
	for _, column := range Columns {
		for _, row := range Rows {
			if row.isIn(column) {
				out = append(out, Cell{column, row, row.claims(column), 1})
			}
		}
	}
	for _, row := range Singles {
		out = append(out, Cell{One, row, claimsOne, 1})
	}
	for _, row := range Large {
		out = append(out, Cell{Memory, row, claimsLarge, 1})
		if row.Kind == Ours {
			out = append(out, Cell{Scale, row, claimsLarge, 1})
		}
	}
	return append(out, again(out)...)
}

// isIn reports whether a row is measured in a column. The own limits of a provisioner with its
// defaults are lower than the raised ones.
func (r Row) isIn(column Column) bool {
	return (!r.usesDefaults() || column == Stock) && (!r.Base || column == Raised)
}

// claims is how many claims a row gets in a column.
func (r Row) claims(column Column) int {
	switch {
	case r.usesDefaults():
		return claimsDefaults
	case column == Stock:
		return claimsStock
	case slices.Contains(compared, r.Name):
		return claimsCompared
	default:
		return claimsOther
	}
}
