package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// everyNode calls f with every combination of the facts about nodes: which one the scheduler
// selected for a pending claim, and which one may have the volume that is to be deleted.
func everyNode(t *testing.T, f func(View)) {
	t.Helper()
	deletions, histories := missingNodeTargets(), buildOnce(t, nodeHistories)
	volumes := []Volume{{}, {State: Unproven, UID: pvUID, Why: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true}}
	for _, finalizer := range []bool{false, true} {
		for _, terminating := range []bool{false, true} {
			volumes = append(volumes, Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: finalizer, Terminating: terminating})
		}
	}
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimPending, ClaimBoundElsewhere} {
		provisions := []Target{{}}
		if claim == ClaimPending {
			provisions = selectedNodeTargets()
		}
		for _, volume := range volumes {
			for _, provision := range provisions {
				for _, deletion := range deletions {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deletion, Runs: runs})
					}
				}
			}
		}
	}
}

func selectedNodeTargets() []Target {
	base := Target{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, NodeSelected: true}
	problem, other, updated, onNode, missing, excluded, last, roomy, occupied, drained := base, base, base, base, base, base, base, base, base, base
	problem.Problem = &Problem{Reason: "WaitingForConfig"}
	other.Node = "n2"
	updated.Revision = "r2"
	onNode.OnSelectedNode = true
	missing.MissingNode = "the selected node n1"
	excluded.ExcludedNode = "the selected node n1 is excluded"
	drained.OnSelectedNode, drained.Cordoned = true, true
	last.MaxAttempts = 2
	roomy.OtherNodes = []string{"n2", "n3"}
	occupied.OtherNodes = []string{"n2"}
	return []Target{problem, base, other, updated, onNode, missing, excluded, last, roomy, occupied, drained}
}

func missingNodeTargets() []Target {
	base := Target{Revision: "r1", RevisionStored: true, HasSlot: true, Supported: true, OnSelectedNode: true}
	out := []Target{base, {Revision: "r1", RevisionStored: true, HasSlot: true}, {Problem: &Problem{Reason: "RevisionMissing"}}}
	for _, policy := range []config.NodeGone{config.WaitForNode, config.AnyNode, config.ForgetVolume} {
		missing := base
		missing.MissingNode, missing.NodeGonePolicy = "the volume's node n1", policy
		out = append(out, missing)
	}
	return out
}

// nodeHistories returns: no run; one provision that ended, at any stage of its claim's
// rescheduling, alone, after a run on another node that was full, or with a delete after it, which
// may wait for its node.
func nodeHistories() [][]Run {
	out := [][]Run{nil}
	full := recorded(run(contract.Provision, 1), contract.NoCapacity, time.Minute)
	full.Node = "n2"
	stuck := run(contract.Provision, 2)
	stuck.Unfinished = true
	stuck.Stuck, stuck.Idle = Problemf("Unschedulable", "no node fits its pod"), true
	out = append(out, []Run{stuck})
	for _, verdict := range []contract.Verdict{contract.NoCapacity, contract.NotStarted, contract.TryAgain, contract.Disrupted} {
		for _, ago := range []time.Duration{0, time.Hour} {
			for _, stage := range []RescheduleStage{RescheduleNone, RescheduleAnnounced, RescheduleDone} {
				for _, nothingBefore := range []bool{false, true} {
					p := recorded(run(contract.Provision, 2), verdict, ago)
					p.Published, p.NothingBefore, p.Reschedule = true, nothingBefore, stage
					out = append(out, []Run{p}, []Run{full, p})
					if stage == RescheduleDone {
						p.Returns = jobs.Returns{Count: 2, At: now.Add(-2 * time.Second)}
						out = append(out, []Run{p})
					}
					for _, d := range nodeDeletes() {
						out = append(out, []Run{p, d})
					}
				}
			}
		}
	}
	return out
}

func nodeDeletes() []Run {
	var out []Run
	for _, volume := range []string{"", pvUID} {
		d := run(contract.Delete, 1)
		d.After, d.Volume = 2, volume
		stuck := d
		stuck.Unfinished = true
		stuck.Stuck, stuck.Idle = Problemf("Unschedulable", "no node fits its pod"), true
		anyNode := stuck
		anyNode.AnyNode = true
		out = append(out, stuck, anyNode, recorded(d, contract.Done, 0), recorded(d, contract.TryAgain, time.Hour))
	}
	return out
}

// nodeLaws checks that no run waits for a node that no longer exists.
func nodeLaws(out *broken, v View, a Launch) {
	target := v.Delete
	switch a.Verb {
	case contract.Provision:
		target = v.Provision
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	out.law("launched a run on a node that no longer exists", target.MissingNode != "" && !a.AnyNode)
	out.law("launched a provision on a node that is excluded", a.Verb == contract.Provision && v.Provision.ExcludedNode != "")
	out.law("launched a run on any node although its node exists", a.AnyNode && target.MissingNode == "")
	out.law("launched a run on any node although the config forbids it", a.AnyNode && target.NodeGonePolicy != config.AnyNode)
	for i := range v.Runs {
		r := &v.Runs[i]
		full := a.Verb == contract.Provision && r.Verb == a.Verb && r.Outcome.Verdict == contract.NoCapacity && !hasChanged(r, target)
		out.law("tried a full node again before its pause", full && v.Now.Before(r.Outcome.Finished.Add(fullPause)))
	}
}

// giveUpLaws checks that a volume is given up only if the config says so, or if a person retains
// its PV or has removed it before it was deleted.
func giveUpLaws(out *broken, v View, left string) {
	d := v.Newest(contract.Delete)
	retained := v.Volume.Exists() && !v.Volume.PolicyDelete
	removed := d != nil && d.Volume != "" && d.Volume != v.Volume.UID && d.Outcome.Verdict != contract.Done
	p := v.Newest(contract.Provision)
	released := left == reason.Released && !v.Volume.Exists() && p != nil && !p.Held
	out.law("gave up a volume although the config does not say so", left != "" && !removed && !retained && !released && v.Delete.whyGivenUp() == "" && (v.Delete.Supported || v.Delete.Problem != nil))
}

func announceLaws(out *broken, v View, a AnnounceReschedule) {
	out.law("announced a rescheduling again while the first is not carried out", a.Run.Reschedule == RescheduleAnnounced)
	out.law("announced a rescheduling while a run has no recorded outcome", a.Run.Unfinished || a.Run.Recorded == nil)
	out.law("announced a rescheduling after the last attempt", hasExhaustedAttempts(&a.Run, v.Provision))
	out.law("announced a rescheduling without counting it", !a.Returns.At.Equal(v.Now) || a.Returns.Count < 1)
	if v.cameBackTo(&a.Run) != nil {
		returnLaws(out, v, a)
	} else {
		out.law("announced a rescheduling twice", a.Run.Reschedule != RescheduleNone)
		verdict := a.Run.Outcome.Verdict
		drained := verdict == contract.Disrupted && v.Provision.Cordoned
		out.law("announced a rescheduling for a node that did not fail", verdict != contract.NoCapacity && verdict != contract.NotStarted && !drained)
		out.law("announced a rescheduling although another run is due at once", hasChanged(&a.Run, v.Provision))
	}
	rescheduledClaimLaws(out, v)
}

// returnLaws checks a return to the scheduler that no run preceded.
func returnLaws(out *broken, v View, a AnnounceReschedule) {
	out.law("did not count a return", a.Returns.Count != a.Run.Returns.Count+1)
	out.law("returned a claim before its pause", v.Now.Before(a.Run.Returns.At.Add(Exponential(a.Run.Returns.Count))))
	roomy, full := false, false
	for _, node := range v.Provision.OtherNodes {
		said := false
		for i := range v.Runs {
			r := &v.Runs[i]
			said = said || r.Node == node && r.Outcome.Verdict == contract.NoCapacity && v.Now.Sub(r.Outcome.Finished) < fullPause
		}
		roomy = roomy || !said
	}
	for i := range v.Runs {
		r := &v.Runs[i]
		full = full || r.Node == v.Provision.Node && r.Outcome.Verdict == contract.NoCapacity && v.Now.Sub(r.Outcome.Finished) < fullPause
	}
	out.law("returned a claim although every node is full", !roomy)
	out.law("returned a claim from a node that is not full", !full)
}

func rescheduleLaws(out *broken, v View) {
	p := v.Newest(contract.Provision)
	out.law("rescheduled without an announcement", v.Provision.whyNodeExcluded() == "" && (p == nil || p.Reschedule != RescheduleAnnounced))
	rescheduledClaimLaws(out, v)
}

func rescheduledClaimLaws(out *broken, v View) {
	p := v.Newest(contract.Provision)
	out.law("rescheduled a claim whose node the scheduler did not select", v.Claim != ClaimPending || !v.Provision.NodeSelected)
	out.law("rescheduled a claim before its run was undone", p != nil && v.canUndo(p))
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("rescheduled while a run has no recorded outcome", r.Unfinished || r.Recorded == nil)
	}
}

// A cordoned node takes the runs of what has a volume there, and no provision again that was
// evicted.
func TestAProvisionIsReturnedFromACordonedNodeOnlyIfItWasEvicted(t *testing.T) {
	evicted := recorded(run(contract.Provision, 1), contract.Disrupted, 0)
	evicted.Published, evicted.NothingBefore = true, true
	undo := recorded(run(contract.Delete, 1), contract.Done, 0)
	undo.After = 1
	failed := evicted
	failed.Outcome.Verdict = contract.TryAgain
	base := Target{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, NodeSelected: true, OnSelectedNode: true, Cordoned: true}
	uncordoned, anywhere, immediate := base, base, base
	uncordoned.Cordoned, anywhere.OnSelectedNode, immediate.NodeSelected = false, false, false
	for name, tt := range map[string]struct {
		target Target
		runs   []Run
		want   string
	}{
		"evicted":                       {base, []Run{evicted}, "Launch undo=true"},
		"evicted and undone":            {base, []Run{evicted, undo}, "decide.AnnounceReschedule"},
		"not evicted":                   {base, []Run{failed}, "decide.Wait"},
		"no run yet":                    {base, nil, "Launch undo=false"},
		"uncordoned":                    {uncordoned, []Run{evicted}, "decide.Wait"},
		"uncordoned after the undo":     {uncordoned, []Run{evicted, undo}, "decide.Wait"},
		"a run may go to any node":      {anywhere, []Run{evicted}, "decide.Wait"},
		"the scheduler selects no node": {immediate, []Run{evicted}, "decide.Wait"},
	} {
		v := View{Now: now, Claim: ClaimPending, Provision: tt.target, Delete: missingNodeTargets()[0], Runs: tt.runs}
		got := fmt.Sprintf("%T", Decide(v))
		if launch, launches := Decide(v).(Launch); launches {
			got = fmt.Sprintf("Launch undo=%t", launch.Undo)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// An action that no view leads to would be missing from the walk.
func TestWalkReachesEveryActionOnAMissingNode(t *testing.T) {
	seen := map[string]int{}
	everyNode(t, func(v View) {
		switch a := Decide(v).(type) { //nolint:gochecksumtype // the others are named by their type
		case Launch:
			seen[fmt.Sprintf("Launch anyNode=%t left=%t undo=%t", a.AnyNode, a.LeftBehind != "", a.Undo)]++
		case ReleaseRecord:
			seen[fmt.Sprintf("ReleaseRecord left=%t", a.LeftBehind != "")]++
		case SetFinalizer:
			seen[fmt.Sprintf("SetFinalizer left=%t", a.LeftBehind != "")]++
		case ReportProblem:
			seen["ReportProblem "+a.Problem.Reason]++
		case AnnounceReschedule:
			seen[fmt.Sprintf("AnnounceReschedule again=%t", a.Returns.Count > 1)]++
		case Cancel:
			seen["Cancel "+string(a.Run.Verb)]++
		default:
			seen[fmt.Sprintf("%T", a)]++
		}
	})
	for _, what := range []string{
		"AnnounceReschedule again=false", "AnnounceReschedule again=true", "decide.Reschedule", "ReportProblem NodeGone", "Cancel delete", "Cancel provision", "ReleaseRecord left=true", "SetFinalizer left=true",
		"Launch anyNode=true left=false undo=true", "Launch anyNode=true left=false undo=false", "Launch anyNode=false left=true undo=false",
	} {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}
