package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// everyNode calls f with every combination of the facts of nodes: the scheduler's choice for a claim that is pending,
// and where a volume lies, or may, that is to be deleted.
func everyNode(t *testing.T, f func(View)) {
	t.Helper()
	cleans, histories := goneTargets(), buildOnce(t, nodeHistories)
	volumes := []Volume{{}, {Exists: true, UID: pvUID, Fault: "it lacks our annotation", Held: true, Reclaim: true}}
	for _, held := range []bool{false, true} {
		for _, leaving := range []bool{false, true} {
			volumes = append(volumes, Volume{Exists: true, UID: pvUID, Released: true, Orphaned: true, Reclaim: true, Held: held, Leaving: leaving})
		}
	}
	for _, claim := range []Claim{ClaimGone, ClaimLeaving, ClaimPending, ClaimElsewhere} {
		serves := []Target{{}}
		if claim == ClaimPending {
			serves = chosenTargets()
		}
		for _, volume := range volumes {
			for _, serve := range serves {
				for _, clean := range cleans {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Serve: serve, Clean: clean, Runs: runs})
					}
				}
			}
		}
	}
}

func chosenTargets() []Target {
	base := Target{Revision: "r1", Hash: "h1", Node: "n1", Pinned: true, Slot: true, Serves: true, Chosen: true}
	problem, other, renewed, onNode, gone, last := base, base, base, base, base, base
	problem.Problem = &Problem{Reason: "WaitingForConfig"}
	other.Node = "n2"
	renewed.Revision = "r2"
	onNode.OnNode = true
	gone.Gone = "the selected node n1"
	last.MaxAttempts = 2
	return []Target{problem, base, other, renewed, onNode, gone, last}
}

func goneTargets() []Target {
	base := Target{Pinned: true, Slot: true, Serves: true, OnNode: true}
	out := []Target{base, {Pinned: true, Slot: true}, {Problem: &Problem{Reason: "RevisionMissing"}}}
	for _, policy := range []config.NodeGone{config.WaitForNode, config.AnyNode, config.ForgetVolume} {
		gone := base
		gone.Gone, gone.IfGone = "the volume's node n1", policy
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
	stuck.Live, stuck.PodKept = true, true
	stuck.Trouble = &jobs.Trouble{Reason: "Unschedulable", Note: "no node takes its pod", Unstarted: true}
	out = append(out, []Run{stuck})
	for _, verdict := range []contract.Verdict{contract.NoCapacity, contract.NotStarted, contract.TryAgain, contract.Disrupted} {
		for _, ago := range []time.Duration{0, time.Hour} {
			for _, stage := range []Return{ReturnNone, ReturnAnnounced, ReturnOver} {
				for _, clean := range []bool{false, true} {
					p := settled(run(contract.Provision, 2), verdict, ago)
					p.Shown, p.Clean, p.Returned = true, clean, stage
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
		waits.Live, waits.PodKept = true, true
		waits.Trouble = &jobs.Trouble{Reason: "Unschedulable", Note: "no node takes its pod", Unstarted: true}
		anywhere := waits
		anywhere.Anywhere = true
		out = append(out, waits, anywhere, settled(d, contract.Done, 0), settled(d, contract.TryAgain, time.Hour))
	}
	return out
}

// nodeLaws: no run is sent where no node is.
func nodeLaws(out *broken, v View, a Launch) {
	target := v.Clean
	switch a.Verb {
	case contract.Provision:
		target = v.Serve
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	out.law("sent a run to a node that has gone", target.Gone != "" && !a.Anywhere)
	out.law("sent a run anywhere that could go to its node", a.Anywhere && target.Gone == "")
	out.law("sent a run anywhere against the config's word", a.Anywhere && target.IfGone != config.AnyNode)
	for i := range v.Runs {
		r := &v.Runs[i]
		full := a.Verb == contract.Provision && r.Verb == a.Verb && r.Outcome.Verdict == contract.NoCapacity && !changed(r, target)
		out.law("tried a full node again before its pause", full && v.Now.Before(r.Outcome.Finished.Add(capacityPause)))
	}
}

// forgetLaws: what is given up is given up by the config's word.
func forgetLaws(out *broken, v View, left string) {
	out.law("gave up what the config does not give up", left != "" && v.Clean.forgotten() == "")
}

func announceLaws(out *broken, v View, a Announce) {
	out.law("announced twice", a.Run.Returned != ReturnNone)
	out.law("announced what is not over", a.Run.Live || a.Run.Settled == nil)
	out.law("announced for a node that has not failed", a.Run.Outcome.Verdict != contract.NoCapacity && a.Run.Outcome.Verdict != contract.NotStarted)
	out.law("announced although another run is due at once", changed(&a.Run, v.Serve))
	out.law("announced after the last attempt", exhausted(&a.Run, v.Serve))
	rescheduleClaim(out, v)
}

func rescheduleLaws(out *broken, v View) {
	p := v.Newest(contract.Provision)
	out.law("rescheduled without an announcement", v.Serve.Gone == "" && (p == nil || p.Returned != ReturnAnnounced))
	rescheduleClaim(out, v)
}

func rescheduleClaim(out *broken, v View) {
	p := v.Newest(contract.Provision)
	out.law("rescheduled a claim whose node nobody chose", v.Claim != ClaimPending || !v.Serve.Chosen)
	out.law("rescheduled what is not undone", p != nil && v.undoable(p))
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("rescheduled while a Job runs", r.Live || r.Settled == nil)
	}
}

// giveBack takes the node off the claim.
func (w *world) giveBack() {
	w.v.Claim, w.asked = ClaimNotOurs, true
	for i := range w.v.Runs {
		if r := &w.v.Runs[i]; r.Returned == ReturnAnnounced {
			r.Returned = ReturnOver
		}
	}
}

// turnScheduler lets the scheduler choose: the same node again, unless it has gone. A node that is waited for comes
// back when nothing else moves.
func (w *world) turnScheduler() bool {
	switch {
	case w.asked && w.v.Claim == ClaimNotOurs:
		if w.v.Claim, w.asked = ClaimPending, false; w.v.Serve.Gone != "" {
			w.v.Serve.Gone, w.v.Serve.Node = "", "n3"
		}
	case w.v.Clean.Problem == nil && w.v.Clean.Gone != "" && w.v.Clean.IfGone == config.WaitForNode:
		w.v.Clean.Gone = ""
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
			seen[fmt.Sprintf("Launch anywhere=%t left=%t undo=%t", a.Anywhere, a.Left != "", a.Undo)]++
		case Release:
			seen[fmt.Sprintf("Release left=%t", a.Left != "")]++
		case Unhold:
			seen[fmt.Sprintf("Unhold left=%t", a.Left != "")]++
		case Tell:
			seen["Tell "+a.Problem.Reason]++
		case Cancel:
			seen["Cancel "+string(a.Run.Verb)]++
		default:
			seen[fmt.Sprintf("%T", a)]++
		}
	})
	for _, what := range []string{
		"decide.Announce", "decide.Reschedule", "Tell NodeGone", "Cancel delete", "Cancel provision", "Release left=true", "Unhold left=true",
		"Launch anywhere=true left=false undo=true", "Launch anywhere=true left=false undo=false", "Launch anywhere=false left=true undo=false",
	} {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}
