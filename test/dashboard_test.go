package test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// notShown are the series without a panel, and why.
var notShown = map[string]string{
	"controller_persistentvolumeclaim_provision_total":        "flex_dispatcher_runs_total has them by verb and verdict",
	"controller_persistentvolumeclaim_provision_failed_total": "flex_dispatcher_runs_total has them by verb and verdict",
	"controller_persistentvolume_delete_total":                "flex_dispatcher_runs_total has them by verb and verdict",
	"controller_persistentvolume_delete_failed_total":         "flex_dispatcher_runs_total has them by verb and verdict, and FlexDeletesFailing watches it",
	"flex_dispatcher_audit_bytes":                             "the number of findings shows that there are any",
	"flex_dispatcher_audit_last_success_timestamp_seconds":    "FlexAuditStale watches it",
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	At struct {
		X, Y, W, H int
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID  string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

// panelsOf returns the rows and panels of the dashboard.
func panelsOf(t *testing.T) []panel {
	t.Helper()
	var dashboard struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring", "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

func TestPanelsOfTheDashboardAreWhole(t *testing.T) {
	all := panelsOf(t)
	shown := 0
	for i, p := range all {
		for _, other := range all[:i] {
			if p.ID == other.ID {
				t.Errorf("%q and %q have the id %d", p.Title, other.Title, p.ID)
			}
			if overlap(p, other) {
				t.Errorf("%q lies on %q", p.Title, other.Title)
			}
		}
		if p.At.W <= 0 || p.At.H <= 0 || p.At.X < 0 || p.At.Y < 0 || p.At.X+p.At.W > 24 {
			t.Errorf("%q does not lie in the grid: %+v", p.Title, p.At)
		}
		if p.Type == "row" {
			continue
		}
		shown++
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("the panel %d, %q, lacks a title, a description, a unit, the data source or a query", p.ID, p.Title)
		}
	}
	if shown == 0 || shown > 14 {
		t.Errorf("%d panels: at most 12 fit into one look, and two are below", shown)
	}
}

func overlap(a, b panel) bool {
	return a.At.X < b.At.X+b.At.W && b.At.X < a.At.X+a.At.W && a.At.Y < b.At.Y+b.At.H && b.At.Y < a.At.Y+a.At.H
}

func TestTheDashboardShowsEverySeriesOrSaysWhyNot(t *testing.T) {
	known, values, shown := seriesAndLeader(), promValues(t), map[string]bool{}
	for _, p := range panelsOf(t) {
		var refs []string
		for _, target := range p.Targets {
			if target.Legend == "" || slices.Contains(refs, target.RefID) {
				t.Errorf("%q: the query %s has no legend, or its letter twice", p.Title, target.RefID)
			}
			refs = append(refs, target.RefID)
			q := known.read(target.Expr, values)
			for _, fault := range q.faults {
				t.Errorf("%q: %s", p.Title, fault)
			}
			for name := range q.series {
				shown[name] = true
				if slices.Contains(known.labels[name], "class") && !slices.Contains(q.matchers[name], `class=~$class`) {
					t.Errorf("%q: %s is not limited to $class", p.Title, name)
				}
			}
		}
	}
	for name := range known.labels {
		if shown[name] == (notShown[name] != "") {
			t.Errorf("%s needs a panel, or a reason in notShown, and not both", name)
		}
	}
	for name := range notShown {
		if known.labels[name] == nil {
			t.Errorf("notShown names %s, which the code has not", name)
		}
	}
	if !strings.Contains(read(t, "monitoring", "dashboard.json"), `"query": "label_values({__name__=~\"flex_dispatcher_.+\"}, class)"`) {
		t.Error("the values of $class come from another query than the one that the test in the lab has sent")
	}
}
