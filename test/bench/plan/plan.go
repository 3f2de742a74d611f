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
	// Class is the class of an example that hack/deploy.sh applies.
	Class string
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
	{Name: "one-cinder", Title: "ours, a real Cinder", Kind: Ours, Class: "cinder-iscsi"},
	{Name: "one-local-path", Title: "local-path-provisioner, defaults", Kind: LocalPath},
}

// claimsOne is how many claims come one after the other.
const claimsOne = 20

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

// compared are the rows on which the comparisons rest.
var compared = []string{"csi", "ours-64"}

// again returns the further runs of those cells, each after one of all the others.
func again(cells []Cell) []Cell {
	var out []Cell
	for run := 2; run <= runs; run++ {
		for _, cell := range cells {
			if slices.Contains(compared, cell.Row.Name) {
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
	{Stock, "ours-64", claimsDefaults},
	{Raised, "floor", claimsQuick},
	{Raised, "csi", claimsQuick},
	{Raised, "ours-1", claimsQuick},
	{Raised, "ours-64", claimsQuick},
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
			switch {
			case row.usesDefaults() && column != Stock: // their own limits are lower than the raised ones
			case row.usesDefaults():
				out = append(out, Cell{column, row, claimsDefaults, 1})
			case column == Stock:
				out = append(out, Cell{column, row, claimsStock, 1})
			case slices.Contains(compared, row.Name):
				out = append(out, Cell{column, row, claimsCompared, 1})
			default:
				out = append(out, Cell{column, row, claimsOther, 1})
			}
		}
	}
	for _, row := range Singles {
		out = append(out, Cell{One, row, claimsOne, 1})
	}
	return append(out, again(out)...)
}
