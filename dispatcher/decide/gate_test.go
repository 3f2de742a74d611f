package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// confirmLaws checks what must hold when a gated run is confirmed.
func confirmLaws(out *broken, v View, a Confirm) {
	out.law("confirmed a run that is not gated", !a.Run.Gated || !a.Run.Unfinished || a.Run.Terminating)
	out.law("confirmed a run while another pod of its claim may run", a.Run.OtherPod != "")
	out.law("confirmed a run before the gates of other controllers were removed", a.Run.ForeignGate)
	out.law("confirmed a run that has too little time left", a.Run.Void)
	out.law("confirmed a run that would not be launched again as it is", !isLaunchedAgain(v, a.Run))
	out.law("confirmed a run on facts of caches that have no common order", v.Contested && !a.NeedsLive)
	for i := range v.Runs {
		r := &v.Runs[i]
		if r.Name == a.Run.Name {
			continue
		}
		out.law("confirmed a run beside an unfinished one", r.Unfinished)
		out.law("confirmed a run while the outcome of another is not recorded", r.Recorded == nil)
		out.law("confirmed a run while a force-deleted pod may still run", v.Now.Before(r.Outcome.MayRunUntil) || r.LostNode != "")
	}
	out.law("confirmed a provision after another run on facts of the caches", a.Run.Verb == contract.Provision && len(v.Runs) > 1 && !a.NeedsLive)
	if a.Run.Verb == contract.Delete {
		confirmDeleteLaws(out, v, a)
	}
}

// confirmDeleteLaws checks that a volume is deleted only if no claim is or can be bound to it. The
// confirmation of the delete of a PV deletes the PV.
func confirmDeleteLaws(out *broken, v View, a Confirm) {
	vol := v.Volume
	out.law("confirmed a delete of a volume that is to be kept", !mayDelete(v, a.Run))
	if a.Run.IsUndo() {
		out.law("confirmed an undo on facts of the caches", !a.NeedsLive)
		return
	}
	out.law("confirmed a delete of a volume that a node has attached", vol.Attached != nil)
	if !vol.Terminating && vol.Use != Released {
		deleteUnboundPVLaws(out, v)
	}
	out.law("deleted a PV without our finalizer, and with it the name of its volume", !vol.HasFinalizer && !vol.Terminating)
}

// mayDelete reports whether what a delete deletes is not to be kept, and no claim is or will be
// bound to it.
func mayDelete(v View, r Run) bool {
	vol := v.Volume
	switch {
	case v.WhyRival != "":
		return false
	case r.IsUndo():
		return !vol.Exists()
	case !vol.Exists() || vol.UID != r.Volume || !vol.PolicyDelete:
		return false
	case vol.IsUnbound() && vol.Terminating, vol.Use == Released:
		return true
	default:
		return vol.Use == NeverBound && vol.State == Mismatched && v.Claim == ClaimPending
	}
}

// launched returns the run of a Job that has just been created, as the Job records it. Its pod has
// not appeared yet.
func launched(v View, a Launch) Run {
	r := Run{Name: jobs.Name(a.Verb, "uid", a.Number), Created: v.Now, Unfinished: true, Unstarted: true, Record: runs.Record{
		Verb: a.Verb, UIDs: []string{"uid"}, Number: a.Number, Held: true,
		Record: jobs.Record{Attempt: a.Attempt, After: a.After, NothingBefore: a.NothingBefore, AnyNode: a.AnyNode},
	}}
	switch a.Verb {
	case contract.Provision:
		r.Hash, r.Revision, r.Node = v.Provision.Hash, v.Provision.Revision, v.Provision.Node
	case contract.Expand:
		r.Hash, r.Revision = v.Expand.Hash, v.Expand.Revision
	case contract.Delete, contract.List:
		r.Revision = v.Delete.Revision
	}
	if a.Verb == contract.Delete && !a.Undo {
		r.Volume, r.Undo = v.Volume.UID, a.NeverBound
	}
	return r
}

// isLaunchedAgain reports whether a gated run would be launched as it is if it did not exist, a
// slot were free and the volume attached nowhere, by comparing it with that run.
func isLaunchedAgain(v View, r Run) bool {
	w := v
	w.Runs, w.Volume.Attached = nil, nil
	for _, other := range v.Runs {
		if other.Name == r.Name {
			continue
		}
		other.Outcome.Finished = now.Add(-24 * time.Hour)    // every pause has passed
		other.Published = other.Published || len(r.UIDs) > 1 // the result of a run before a batch is written later
		w.Runs = append(w.Runs, other)
	}
	for _, target := range []*Target{&w.Provision, &w.Delete, &w.Expand} {
		target.HasSlot = true
	}
	launch, launches := Decide(w).(Launch)
	if !launches {
		return false
	}
	again := launched(w, launch)
	dirty := r.NothingBefore && !again.NothingBefore
	older := r.IsUndo() && r.After < again.After
	told := r.IsNeverBound() == again.IsNeverBound() || r.IsNeverBound() && v.Volume.Terminating
	return fmt.Sprint(r.Verb, r.Hash, r.Revision, r.Node, r.AnyNode, r.Volume) == fmt.Sprint(again.Verb, again.Hash, again.Revision, again.Node, again.AnyNode, again.Volume) &&
		!dirty && !older && told
}

// gatedLaws checks what must hold for any action while a run is gated.
func gatedLaws(out *broken, v View, action Action) {
	first, later := v.gatedRuns()
	if first == nil {
		return
	}
	cancel, cancels := action.(Cancel)
	_, confirms := action.(Confirm)
	switch {
	case later != nil:
		out.law("confirmed one of two gated runs", confirms)
		reversed := v
		reversed.Runs = slices.Clone(v.Runs)
		slices.Reverse(reversed.Runs)
		other, same := Decide(reversed).(Cancel)
		out.law("cancelled one gated run or the other by their order in a list", cancels && cancel.Run.Gated && (!same || other.Run.Name != cancel.Run.Name))
		out.law("cancelled the earlier of two gated runs", cancels && cancel.Run.Created.Before(first.Created))
	case cancels && cancel.Run.Gated:
		late := first.Void
		out.law("cancelled a gated run that would be launched again as it is", !late && isLaunchedAgain(v, *first))
		out.law("cancelled a gated run whatever other claims need", first.Verb != contract.Delete && !late && !cancel.UnlessNeeded)
		out.law("left a delete to the other claims of its batch", first.Verb == contract.Delete && cancel.UnlessNeeded)
	}
	readinessLaws(out, v, action, *first)
}

// readinessLaws checks what the loop of a batch hears of one of its claims about a gated run.
func readinessLaws(out *broken, v View, action Action, r Run) {
	_, confirms := action.(Confirm)
	cancel, cancels := action.(Cancel)
	says := confirms || cancels && cancel.Run.Name == r.Name
	for i := range v.Runs {
		if o := &v.Runs[i]; o.Name != r.Name {
			out.law("says that a batch may start while another run has not ended", o.Unfinished && says && !r.Void)
			out.law("says that a batch may start while the outcome of another run is not recorded", o.Recorded == nil && says && !r.Void)
		}
	}
}

// A fact that changes no action would be missing from the walk.
func TestWalkReachesEveryActionOnAGatedRun(t *testing.T) {
	seen := map[string]int{}
	everyGated(t, func(v View) {
		switch a := Decide(v).(type) { //nolint:gochecksumtype // the others are named by their type
		case Confirm:
			seen[fmt.Sprintf("Confirm %s undo=%t live=%t alone=%t", a.Run.Verb, a.Run.IsUndo(), a.NeedsLive, len(a.Run.UIDs) < 2)]++
		case Cancel:
			seen[fmt.Sprintf("Cancel %s gated=%t", a.Run.Verb, a.Run.Gated)]++
		case ReportProblem:
			seen["ReportProblem "+a.Problem.Reason]++
		default:
			seen[fmt.Sprintf("%T", a)]++
		}
	})
	for _, what := range []string{
		"Confirm provision undo=false live=false alone=true", "Confirm provision undo=false live=true alone=true", "Confirm provision undo=false live=false alone=false",
		"Confirm delete undo=true live=true alone=true", "Confirm delete undo=false live=false alone=true", "Confirm delete undo=false live=true alone=true",
		"Confirm delete undo=false live=false alone=false", "Confirm expand undo=false live=false alone=true",
		"Cancel provision gated=true", "Cancel delete gated=true", "Cancel expand gated=true",
		"ReportProblem RunNotConfirmed", "decide.Wait", "decide.RecordOutcome", "decide.PublishResult", "decide.ReleaseRecord", "decide.SetFinalizer", "decide.StoreRevision", "decide.SetResizeStage",
	} {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}

// at returns a run of the view.
func (v *View) at(r Run) *Run {
	return &v.Runs[slices.IndexFunc(v.Runs, func(other Run) bool { return other.Name == r.Name })]
}

// write changes the view as the write of an action does that may come before a gated delete. It
// returns false for one that writes nothing, and waits for its time.
func (v *View) write(action Action) bool {
	switch a := action.(type) { //nolint:gochecksumtype // no other comes before a gated delete
	case Wait:
		return v.waits(a.Until)
	case ReportProblem:
		lost := v.unreportedRun() != nil && v.unreportedRun().LostNode != ""
		return a.Problem.Reason != reason.RunNotConfirmed && !lost && v.waits(a.Until)
	case Cancel:
		r := v.at(a.Run)
		r.Terminating, r.Gated, r.OtherPod, r.ForeignGate, r.RecheckAt = true, false, "", false, time.Time{}
	case KeepVolume:
		if a.Run.Name != "" {
			v.at(a.Run).Rival = "mine"
		} else {
			v.Volume.PolicyDelete = false
		}
	case RecordOutcome:
		r := v.at(a.Run)
		r.Recorded, r.Held = &r.Outcome, r.Held && !a.Release
	case PublishResult:
		v.at(a.Run).Published = true
	case ReleaseRecord:
		v.at(a.Run).Held = false
	case SetFinalizer:
		v.Volume.HasFinalizer = !a.Remove
	default:
		panic(fmt.Sprintf("%T comes before a gated delete", action))
	}
	return true
}

// waits lets the time come that the dispatcher waits for. It returns false if it waits for none.
func (v *View) waits(until time.Time) bool {
	if until.IsZero() {
		return false
	}
	v.Now = until
	return true
}

// endOthers ends the unfinished runs but one, and waits until no pod of an earlier one may run.
func (v *View) endOthers(name string) bool {
	for i := range v.Runs {
		if r := &v.Runs[i]; r.Unfinished && r.Name != name {
			r.Unfinished, r.Outcome = false, runs.Outcome{Verdict: contract.TryAgain, Finished: v.Now}
			return true
		}
	}
	r := v.unreportedRun()
	if r != nil {
		v.Now, r.LostNode = r.Outcome.MayRunUntil.Add(time.Hour), ""
	}
	return r != nil
}

// The dispatcher itself cancels the delete, without a change by anybody else, before its container
// can start.
func TestGatedDeleteOfAKeptVolumeIsCancelled(t *testing.T) {
	cancelled, views := 0, 0
	everyGated(t, func(v View) {
		views++
		first, later := v.gatedRuns()
		if first.Verb != contract.Delete || later != nil || mayDelete(v, *first) {
			return
		}
		const enough = 20
		s := v
		s.Runs = slices.Clone(v.Runs)
		for range enough {
			action := Decide(s)
			switch a := action.(type) { //nolint:gochecksumtype // the others change something else first
			case Confirm:
				t.Fatalf("confirmed %s\nfrom %s\nin %s", a.Run.Name, describe(v), describe(s))
			case Cancel:
				if a.Run.Name == first.Name {
					cancelled++
					return
				}
			}
			if !s.write(action) && !s.endOthers(first.Name) {
				t.Fatalf("waits for ever with %#v\nfrom %s\nin %s", action, describe(v), describe(s))
			}
		}
		t.Fatalf("not cancelled after %d actions\nfrom %s\nin %s", enough, describe(v), describe(s))
	})
	t.Logf("%d views, %d cancelled", views, cancelled)
	if cancelled == 0 {
		t.Error("no view leads to a cancellation: the walk lacks facts")
	}
}
