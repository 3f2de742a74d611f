package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// everyNode calls f with every combination of the facts of nodes: the scheduler's choice for a claim that is pending,
// and where a volume lies, or may, that is to be deleted.
func everyNode(t *testing.T, f func(View)) {
	t.Helper()
	cleans, histories := goneTargets(), buildOnce(t, nodeHistories)
	volumes := []Volume{{}, {Exists: true, UID: pvUID, Unproven: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true}}
	for _, held := range []bool{false, true} {
		for _, leaving := range []bool{false, true} {
			volumes = append(volumes, Volume{Exists: true, UID: pvUID, Released: true, Orphaned: true, PolicyDelete: true, HasFinalizer: held, Terminating: leaving})
		}
	}
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimPending, ClaimBoundElsewhere} {
		serves := []Target{{}}
		if claim == ClaimPending {
			serves = chosenTargets()
		}
		for _, volume := range volumes {
			for _, serve := range serves {
				for _, clean := range cleans {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: serve, Delete: clean, Runs: runs})
					}
				}
			}
		}
	}
}

func chosenTargets() []Target {
	base := Target{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, NodeSelected: true}
	problem, other, renewed, onNode, gone, last := base, base, base, base, base, base
	problem.Problem = &Problem{Reason: "WaitingForConfig"}
	other.Node = "n2"
	renewed.Revision = "r2"
	onNode.OnSelectedNode = true
	gone.MissingNode = "the selected node n1"
	last.MaxAttempts = 2
	return []Target{problem, base, other, renewed, onNode, gone, last}
}

func goneTargets() []Target {
	base := Target{RevisionStored: true, HasSlot: true, Supported: true, OnSelectedNode: true}
	out := []Target{base, {RevisionStored: true, HasSlot: true}, {Problem: &Problem{Reason: "RevisionMissing"}}}
	for _, policy := range []config.NodeGone{config.WaitForNode, config.AnyNode, config.ForgetVolume} {
		gone := base
		gone.MissingNode, gone.NodeGonePolicy = "the volume's node n1", policy
		out = append(out, gone)
	}
	return out
}

// nodeHistories: no run; one provision that ended, at any stage of its claim's return, alone, after a run on another
// node that was full, or with a delete after it, which may wait for its node.
func nodeHistories() [][]Run {
	out := [][]Run{nil}
	full := settled(run(contract.Provision, 1), contract.NoCapacity, time.Minute)
	full.Node = "n2"
	stuck := run(contract.Provision, 2)
	stuck.Unfinished, stuck.PodKept = true, true
	stuck.Stuck = &runs.Stuck{Reason: "Unschedulable", Note: "no node takes its pod", Unstarted: true}
	out = append(out, []Run{stuck})
	for _, verdict := range []contract.Verdict{contract.NoCapacity, contract.NotStarted, contract.TryAgain, contract.Disrupted} {
		for _, ago := range []time.Duration{0, time.Hour} {
			for _, stage := range []RescheduleStage{RescheduleNone, RescheduleAnnounced, RescheduleDone} {
				for _, clean := range []bool{false, true} {
					p := settled(run(contract.Provision, 2), verdict, ago)
					p.Published, p.NothingBefore, p.Reschedule = true, clean, stage
					out = append(out, []Run{p}, []Run{full, p})
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
		waits := d
		waits.Unfinished, waits.PodKept = true, true
		waits.Stuck = &runs.Stuck{Reason: "Unschedulable", Note: "no node takes its pod", Unstarted: true}
		anywhere := waits
		anywhere.AnyNode = true
		out = append(out, waits, anywhere, settled(d, contract.Done, 0), settled(d, contract.TryAgain, time.Hour))
	}
	return out
}

// nodeLaws: no run is sent where no node is.
func nodeLaws(out *broken, v View, a Launch) {
	target := v.Delete
	switch a.Verb {
	case contract.Provision:
		target = v.Provision
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	out.law("sent a run to a node that has gone", target.MissingNode != "" && !a.AnyNode)
	out.law("sent a run anywhere that could go to its node", a.AnyNode && target.MissingNode == "")
	out.law("sent a run anywhere against the config's word", a.AnyNode && target.NodeGonePolicy != config.AnyNode)
	for i := range v.Runs {
		r := &v.Runs[i]
		full := a.Verb == contract.Provision && r.Verb == a.Verb && r.Outcome.Verdict == contract.NoCapacity && !hasChanged(r, target)
		out.law("tried a full node again before its pause", full && v.Now.Before(r.Outcome.Finished.Add(capacityPause)))
	}
}

// forgetLaws: what is given up is given up by the config's word.
func forgetLaws(out *broken, v View, left string) {
	out.law("gave up what the config does not give up", left != "" && v.Delete.givenUp() == "")
}

func announceLaws(out *broken, v View, a AnnounceReschedule) {
	out.law("announced twice", a.Run.Reschedule != RescheduleNone)
	out.law("announced what is not over", a.Run.Unfinished || a.Run.Recorded == nil)
	out.law("announced for a node that has not failed", a.Run.Outcome.Verdict != contract.NoCapacity && a.Run.Outcome.Verdict != contract.NotStarted)
	out.law("announced although another run is due at once", hasChanged(&a.Run, v.Provision))
	out.law("announced after the last attempt", attemptsExhausted(&a.Run, v.Provision))
	rescheduleClaim(out, v)
}

func rescheduleLaws(out *broken, v View) {
	p := v.Newest(contract.Provision)
	out.law("rescheduled without an announcement", v.Provision.MissingNode == "" && (p == nil || p.Reschedule != RescheduleAnnounced))
	rescheduleClaim(out, v)
}

func rescheduleClaim(out *broken, v View) {
	p := v.Newest(contract.Provision)
	out.law("rescheduled a claim whose node nobody chose", v.Claim != ClaimPending || !v.Provision.NodeSelected)
	out.law("rescheduled what is not undone", p != nil && v.canUndo(p))
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("rescheduled while a Job runs", r.Unfinished || r.Recorded == nil)
	}
}

// giveBack takes the node off the claim.
func (w *world) giveBack() {
	w.v.Claim, w.asked = ClaimNotOurs, true
	for i := range w.v.Runs {
		if r := &w.v.Runs[i]; r.Reschedule == RescheduleAnnounced {
			r.Reschedule = RescheduleDone
		}
	}
}

// turnScheduler lets the scheduler choose: the same node again, unless it has gone. A node that is waited for comes
// back when nothing else moves.
func (w *world) turnScheduler() bool {
	switch {
	case w.asked && w.v.Claim == ClaimNotOurs:
		if w.v.Claim, w.asked = ClaimPending, false; w.v.Provision.MissingNode != "" {
			w.v.Provision.MissingNode, w.v.Provision.Node = "", "n3"
		}
	case w.v.Delete.Problem == nil && w.v.Delete.MissingNode != "" && w.v.Delete.NodeGonePolicy == config.WaitForNode:
		w.v.Delete.MissingNode = ""
	default:
		return false
	}
	return true
}

// TestTheWalkReachesEveryWayAroundANode proves that the walk has not lost the facts of nodes.
func TestTheWalkReachesEveryWayAroundANode(t *testing.T) {
	seen := map[string]int{}
	everyNode(t, func(v View) {
		switch a := Decide(v).(type) { //nolint:gochecksumtype // the others are named by their type
		case Launch:
			seen[fmt.Sprintf("Launch anywhere=%t left=%t undo=%t", a.AnyNode, a.LeftBehind != "", a.Undo)]++
		case ReleaseRecord:
			seen[fmt.Sprintf("Release left=%t", a.LeftBehind != "")]++
		case RemoveFinalizer:
			seen[fmt.Sprintf("Unhold left=%t", a.LeftBehind != "")]++
		case ReportProblem:
			seen["Tell "+a.Problem.Reason]++
		case Cancel:
			seen["Cancel "+string(a.Run.Verb)]++
		default:
			seen[fmt.Sprintf("%T", a)]++
		}
	})
	for _, what := range []string{
		"decide.AnnounceReschedule", "decide.Reschedule", "Tell NodeGone", "Cancel delete", "Cancel provision", "Release left=true", "Unhold left=true",
		"Launch anywhere=true left=false undo=true", "Launch anywhere=true left=false undo=false", "Launch anywhere=false left=true undo=false",
	} {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}
