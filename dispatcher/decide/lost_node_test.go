package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// forced returns a provision whose pod was deleted by force on a node that is lost, or not, and may
// run until a time.
func forced(until time.Time, lost string) Run {
	p := recorded(run(contract.Provision, 1), contract.Disrupted, time.Hour)
	p.Outcome.MayRunUntil, p.Outcome.Node, p.LostNode, p.Published = until, "n1", lost, true
	return p
}

// No clock shows that a pod has ended whose kubelet does not run.
func TestWaitedOutOnlyWhileTheNodeIsNotLost(t *testing.T) {
	before, after := now.Add(-time.Second), now.Add(time.Hour)
	for name, test := range map[string]struct {
		run   Run
		until time.Time // zero: the next run is launched
		note  string
	}{
		"its time has passed":                     {forced(before, ""), time.Time{}, ""},
		"its time has not passed":                 {forced(after, ""), after, "until its deadline"},
		"its time has passed, its node is lost":   {forced(before, "n1"), now.Add(30 * time.Second), "Its node n1 has not reported the end of the pod, and is not Ready"},
		"its time has not passed, the node is so": {forced(after, "n1"), now.Add(30 * time.Second), "Its node n1 has not reported the end of the pod, and is not Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			v := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Delete: Target{RevisionStored: true, HasSlot: true}, Runs: []Run{test.run}}
			report, reports := Decide(v).(ReportProblem)
			if reports == test.until.IsZero() {
				t.Fatalf("got %#v", Decide(v))
			}
			if reports && (report.Problem.Reason != reason.WaitingForNode || !report.Until.Equal(test.until) || !strings.Contains(report.Problem.Note.String(), test.note)) {
				t.Errorf("got %#v", report)
			}
		})
	}
}

func TestLostNodeIsNamedWithBothRemedies(t *testing.T) {
	want := "the pod of the Job provision-uid-1 was force-deleted. Its node n1 has not reported the end of the pod, and is not Ready, so the pod may still run. No other Job " +
		"is started for the claim. Remedy: bring the node back. If the node is shut down for certain, taint it: " +
		"kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	if got := unreportedProblem(forced(now, "n1")); got.Note.String() != want {
		t.Errorf("got %s", got.Note)
	}
}

// Of several such runs the one is reported that takes longest.
func TestLostNodeIsReportedBeforeADeadline(t *testing.T) {
	all := []Run{forced(now.Add(time.Minute), ""), forced(now.Add(-time.Hour), "n1"), forced(now.Add(time.Hour), "")}
	v := View{Now: now, Runs: all}
	if got := v.unreportedRun(); got == nil || got.LostNode != "n1" {
		t.Errorf("got %+v", got)
	}
	v.Runs = []Run{all[0], all[2]}
	if got := v.unreportedRun(); got == nil || !got.Outcome.MayRunUntil.Equal(now.Add(time.Hour)) {
		t.Errorf("got %+v", got)
	}
	v.Runs = []Run{{Outcome: runs.Outcome{Verdict: contract.Done, Finished: now}, LostNode: "n1"}}
	if got := v.unreportedRun(); got != nil {
		t.Errorf("a run whose node has reported its end is waited for: %+v", got)
	}
}

func TestGateWaitsForTheNodeOfAnotherPod(t *testing.T) {
	v := gatedUndo()
	v.Runs[1].GatedSince, v.Runs[1].OtherPod, v.Runs[1].LostNode = now.Add(-time.Hour), "a-pod", "n1"
	want := ReportProblem{Problem: lostNodeProblem("the pod a-pod", "n1"), Until: now.Add(30 * time.Second)}
	if got := Decide(v); got != want {
		t.Errorf("got %#v, want %#v", got, want)
	}
}
