package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// gatedUndo returns a view with a gated undo that has nothing in its way.
func gatedUndo() View {
	p := recorded(run(contract.Provision, 2), contract.TryAgain, time.Hour)
	p.Published = true
	d := gated(run(contract.Delete, 1))
	d.After, d.Hash, d.Node, d.NothingBefore = 2, "", "", false
	return View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: []Run{p, d}}
}

func TestGateIsReportedAfterHalfAMinute(t *testing.T) {
	created, until := now.Add(-30*time.Second), now.Add(time.Hour)
	note := "the Job delete-uid-1 is not confirmed yet: "
	another := reason.Note{
		Cause:  note + "the pod a-pod of the same claim may still run. The Job starts when that pod has ended",
		Remedy: "only if that pod has a scheduling gate and its Job no longer exists: delete that pod",
	}
	forced := runs.Outcome{Verdict: contract.Disrupted, Finished: now.Add(-time.Hour), MayRunUntil: until}
	for name, test := range map[string]struct {
		change func(d, p *Run)
		want   Action
	}{
		"younger": {func(d, _ *Run) { d.OtherPod, d.GatedSince = "a-pod", created.Add(time.Second) }, Wait{
			Until: created.Add(31 * time.Second), Why: "the Job delete-uid-1 is not confirmed yet",
		}},
		"another pod": {func(d, _ *Run) { d.OtherPod = "a-pod" }, ReportProblem{
			Problem: Problem{Reason: reason.RunNotConfirmed, Note: another}, Until: now.Add(30 * time.Second),
		}},
		"another pod, until a time": {func(d, _ *Run) { d.OtherPod, d.RecheckAt = "a-pod", until }, ReportProblem{
			Problem: Problem{Reason: reason.RunNotConfirmed, Note: another}, Until: until,
		}},
		"another controller's gate": {func(d, _ *Run) { d.ForeignGate = true }, ReportProblem{
			Problem: Problem{Reason: reason.RunNotConfirmed, Note: reason.Note{Cause: note + "its pod has scheduling gates of other controllers, which must remove them"}},
			Until:   now.Add(30 * time.Second),
		}},
		"a pod that was deleted by force": {func(_, p *Run) { p.Outcome = forced }, ReportProblem{
			Problem: unreportedProblem(Run{Name: "provision-uid-2", Outcome: forced}), Until: now.Add(30 * time.Second),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := gatedUndo()
			v.Runs[1].GatedSince = created
			test.change(&v.Runs[1], &v.Runs[0])
			if got := Decide(v); got != test.want {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

// Two leaders with different lists of the same runs cancel the same one.
func TestLaterOfTwoGatedRunsIsCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		older, younger string
		apart          time.Duration
		want           string
	}{
		"created later":              {"b", "a", time.Second, "a"},
		"created in the same second": {"b", "a", 0, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			v := gatedUndo()
			one, two := v.Runs[1], v.Runs[1]
			one.Name, two.Name, two.Created = test.older, test.younger, one.Created.Add(test.apart)
			for _, all := range [][]Run{{v.Runs[0], one, two}, {two, one, v.Runs[0]}} {
				v.Runs = all
				if a, cancels := Decide(v).(Cancel); !cancels || a.Run.Name != test.want {
					t.Errorf("got %#v, want %s cancelled", Decide(v), test.want)
				}
			}
		})
	}
}

// The claims of a batch share one Job, and each says whether it needs that. A delete that one of them
// does not need is cancelled for all.
func TestAClaimOfABatchSaysWhetherItNeedsTheRun(t *testing.T) {
	for name, test := range map[string]struct {
		wanted bool
		verb   contract.Verb
		want   Action
	}{
		"a provision":                      {true, contract.Provision, Confirm{}},
		"a provision, no longer needed":    {false, contract.Provision, Cancel{UnlessNeeded: true}},
		"a delete, which is to be deleted": {true, contract.Delete, Confirm{}},
		"a delete, which is to be kept":    {false, contract.Delete, Cancel{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := gated(run(test.verb, 1))
			r.UIDs = []string{"uid", "other"}
			v := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Delete: deleteTargets()[1]}
			if test.verb == contract.Delete {
				r.Volume, r.NothingBefore, v.Claim = pvUID, false, ClaimGone
				v.Volume = Volume{State: Fits, Use: Released, UID: pvUID, HasFinalizer: test.wanted, PolicyDelete: test.wanted}
			} else if !test.wanted {
				v.Claim = ClaimGone
			}
			v.Runs = []Run{r}
			got := Decide(v)
			cancel, _ := got.(Cancel)
			want, _ := test.want.(Cancel)
			if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", test.want) || cancel.UnlessNeeded != want.UnlessNeeded {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}
