package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// listed returns a list that has waited at its gate for a second.
func listed(changes ...func(*Run)) *Run {
	r := gated(run(contract.List, 1))
	r.Held = false
	for _, change := range changes {
		change(&r)
	}
	return &r
}

func TestListIsConfirmedAtOnceOrCancelledWithTheReason(t *testing.T) {
	ready := Target{Revision: "r1", Supported: true}
	for name, test := range map[string]struct {
		list    *Run
		config  Target
		want    string
		because string
	}{
		"as it was made":          {listed(), ready, "confirm", ""},
		"its config is gone":      {listed(), Target{Problem: &Problem{Note: "no config"}}, "cancel", "no config"},
		"its config has changed":  {listed(), Target{Revision: "r2", Supported: true}, "cancel", "the class has r2 now"},
		"its image has no list":   {listed(), Target{Revision: "r1"}, "cancel", "does not serve the verb list"},
		"it is late":              {listed(func(r *Run) { r.Void = true }), ready, "cancel", "not confirmed in time"},
		"another one runs":        {listed(func(r *Run) { r.OtherPod = "a-pod" }), ready, "wait", ""},
		"another one runs long":   {listed(func(r *Run) { r.OtherPod, r.GatedSince = "a-pod", now.Add(-time.Hour) }), ready, "report", "lists the same storage"},
		"a foreign gate":          {listed(func(r *Run) { r.ForeignGate = true }), ready, "wait", ""},
		"gone while another runs": {listed(func(r *Run) { r.OtherPod = "a-pod" }), Target{Problem: &Problem{Note: "no config"}}, "cancel", "no config"},
	} {
		v := View{Now: now, List: test.list, Audit: test.config, Delete: Target{Problem: &Problem{Reason: "RevisionMissing"}}}
		kind, because := "", ""
		switch a := Decide(v).(type) { //nolint:gochecksumtype // a list leads to no other
		case Confirm:
			kind = "confirm"
			if r, needsLive := ReadinessOf(v, test.list.Name); r != Ready || needsLive || a.Run.Name != test.list.Name || !IsSafeOnStaleFacts(a) {
				t.Errorf("%s: confirmed, and its readiness is %d", name, r)
			}
		case Cancel:
			kind, because = "cancel", a.Why
		case Wait:
			kind = "wait"
			if a.Until.IsZero() {
				t.Errorf("%s: it waits without an end", name)
			}
		case ReportProblem:
			kind, because = "report", a.Problem.Note
		}
		if kind != test.want || !strings.Contains(because, test.because) {
			t.Errorf("%s: %s because %q, want %s because %q", name, kind, because, test.want, test.because)
		}
		if r, _ := ReadinessOf(v, test.list.Name); kind != "confirm" && r != Blocked {
			t.Errorf("%s: its readiness is %d", name, r)
		}
	}
}
