package plan_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

func names(cells []plan.Cell) map[string]plan.Cell {
	out := map[string]plan.Cell{}
	for _, cell := range cells {
		out[cell.Name()] = cell
	}
	return out
}

func TestTheWholeRunHasEveryRowInEveryColumnAndDefaultsAtStockOnly(t *testing.T) {
	cells := names(plan.Cells(false))
	for _, column := range plan.Columns {
		for _, row := range plan.Rows {
			cell, has := cells[plan.Cell{Column: column, Row: row}.Name()]
			isDefault := row.Kind != plan.Floor && row.Deletes() && !row.Tuned
			if want := (!isDefault || column == plan.Stock) && (!row.Base || column == plan.Raised); has != want {
				t.Errorf("%s in %s: %v, want %v", row.Name, column, has, want)
			}
			if isDefault && has && cell.Claims != 50 {
				t.Errorf("%s: %d claims, want 50", cell.Name(), cell.Claims)
			}
		}
	}
	for _, row := range plan.Singles {
		if _, has := cells["one/"+row.Name]; !has {
			t.Errorf("no claims one after the other for %s", row.Name)
		}
	}
	if got := cells["stock/ours-64"].Claims; got != 200 {
		t.Errorf("stock: %d claims, want 200", got)
	}
}

func TestTheQuickRunIsAPartOfTheWhole(t *testing.T) {
	whole := names(plan.Cells(false))
	cells := plan.Cells(true)
	for _, cell := range cells {
		if _, has := whole[cell.Name()]; !has {
			t.Errorf("%s is not part of the whole run", cell.Name())
		}
	}
	if len(cells) != 7 {
		t.Errorf("%d cells: a row of the quick run is not known", len(cells))
	}
}

func TestStockSetsNoLimits(t *testing.T) {
	for _, column := range plan.Columns {
		limited := strings.Contains(column.Controllers()+column.Scheduler(), "qps")
		if limited != (column != plan.Stock) {
			t.Errorf("%s: %s; %s", column, column.Controllers(), column.Scheduler())
		}
	}
}

func TestAnUnknownRowIsAnError(t *testing.T) {
	if _, err := plan.RowOf("none"); err == nil {
		t.Error("no error")
	}
	if row, err := plan.RowOf("csi"); err != nil || !row.IsPeer() {
		t.Errorf("csi: %v, %v", row, err)
	}
}

func TestWhatIsComparedIsMeasuredThreeTimesEachInAFileOfItsOwn(t *testing.T) {
	runs, files := map[string]int{}, map[string]bool{}
	for _, cell := range plan.Cells(false) {
		runs[cell.Name()]++
		files[cell.File()] = true
	}
	for name, want := range map[string]int{"raised/csi": 3, "max/ours-64": 3, "stock/csi": 3, "raised/floor": 1, "raised/recipe": 3, "raised/base-1": 3, "memory/csi": 1} {
		if runs[name] != want {
			t.Errorf("%s is measured %d times, want %d", name, runs[name], want)
		}
	}
	if len(files) != len(plan.Cells(false)) {
		t.Errorf("%d files for %d cells", len(files), len(plan.Cells(false)))
	}
}
