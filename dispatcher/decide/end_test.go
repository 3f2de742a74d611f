package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// simulation applies actions to a view, and makes the changes that Kubernetes and an image make that succeeds from now on.
type simulation struct {
	v   View
	log []Action
	// unscheduled: the scheduler has yet to select a node for the claim.
	unscheduled bool
}

// step makes the dispatcher's next change. It returns false when the dispatcher waits.
func (s *simulation) step() bool {
	action := Decide(s.v)
	s.log = append(s.log, action)
	switch a := action.(type) {
	case Wait:
		return s.waits(a.Until)
	case ReportProblem:
		lost := s.v.unconfirmedRun() != nil && s.v.unconfirmedRun().LostNode != ""
		return a.Problem.Reason != reason.RunNotConfirmed && a.Problem.Reason != reason.VolumeInUse && !lost && s.waits(a.Until)
	case AwaitSlot:
		return false
	case StoreRevision:
		s.v.Provision.RevisionStored = true
	case Launch:
		s.launch(a)
	case Confirm:
		s.confirm(s.at(a.Run))
	case Cancel:
		s.cancel(s.at(a.Run))
	case Waive:
		s.at(a.Run).Waived = true
	case AnnounceReschedule:
		s.at(a.Run).Reschedule, s.at(a.Run).Returns = RescheduleAnnounced, a.Returns
	case Reschedule:
		s.reschedule()
	case RemovePodFinalizer:
		s.at(a.Run).PodKept = false
	case NoteRival:
		s.noteRival(a)
	case FreeMisnamed:
		s.v.Misnamed = false
	case CreatePV:
		s.v.Volume = Volume{Exists: true, UID: "new", HasFinalizer: true, PolicyDelete: true}
	case RecordOutcome:
		s.record(a)
	case PublishResult:
		s.at(a.Run).Published = true
	case ReleaseRecord:
		s.at(a.Run).Held = false
	case AddFinalizer:
		s.v.Volume.HasFinalizer = true
	case RemoveFinalizer:
		s.removeFinalizer()
	case DeletePV:
		s.v.Volume.Terminating = true
	case SetPVCapacity:
		s.setCapacity(s.at(a.Run))
	case SetResizeStatus:
		s.setResizeStatus(a.To)
	}
	return true
}

// waits lets the time come that the dispatcher waits for. It returns false if it waits for none.
func (s *simulation) waits(until time.Time) bool {
	if until.IsZero() {
		return false
	}
	s.v.Now = until
	return true
}

func (s *simulation) record(a RecordOutcome) {
	outcome := a.Run.Outcome
	r := s.at(a.Run)
	r.Recorded, r.Held = &outcome, r.Held && !a.Release
	if a.Describes {
		r.Described = "a PV"
	}
}

func (s *simulation) removeFinalizer() {
	s.v.Volume.HasFinalizer = false
	if s.v.Volume.Terminating {
		s.v.Volume = Volume{}
	}
}

func (s *simulation) setResizeStatus(to ResizeStage) {
	s.v.Resize.Stage = to
	if to == ResizeNone {
		s.v.Resize = Resize{}
	}
}

func (s *simulation) noteRival(a NoteRival) {
	if a.Run.Name != "" {
		s.at(a.Run).NotedRival = s.v.Rival.Name
	} else {
		s.v.Volume.NotedRival = s.v.Rival.Name
	}
}

func (s *simulation) launch(a Launch) {
	s.v.Runs = append(s.v.Runs, launched(s.v, a))
}

// launched returns the run of a Job that has just been created, as the Job records it. Its pod has not appeared yet.
func launched(v View, a Launch) Run {
	r := Run{Name: jobs.Name(a.Verb, "uid", a.Number), Created: v.Now, First: true, Unfinished: true, Unstarted: true, Record: runs.Record{
		Verb: a.Verb, UIDs: []string{"uid"}, Number: a.Number, Attempt: a.Attempt, After: a.After, NothingBefore: a.NothingBefore, AnyNode: a.AnyNode, Held: true,
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
		r.Volume, r.NeverBound = v.Volume.UID, a.NeverBound
	}
	return r
}

// confirm starts a gated run. The PV whose volume it deletes is deleted before, and our finalizer keeps it.
func (s *simulation) confirm(r *Run) {
	r.Gated, r.Unstarted = false, false
	if r.Verb == contract.Delete && r.Volume != "" {
		s.v.Volume.Terminating = true
	}
}

// cancel deletes a Job. A pod that is being deleted is not gated any more: it will never have a node.
func (s *simulation) cancel(r *Run) {
	r.Terminating, r.Gated, r.OtherPod, r.ForeignGate, r.RecheckAt = true, false, "", false, time.Time{}
}

func (s *simulation) at(r Run) *Run {
	for i := range s.v.Runs {
		if s.v.Runs[i].Name == r.Name {
			return &s.v.Runs[i]
		}
	}
	return nil
}

// moveRun makes one change of an unfinished run. Its pod appears with the gate. What is in the way of its confirmation ends, and another claim
// that it serves lets it start. From then on it ends.
func (s *simulation) moveRun(r *Run) bool {
	switch {
	case r.OtherPod != "" || r.ForeignGate:
		r.OtherPod, r.ForeignGate, r.RecheckAt = "", false, time.Time{}
	case r.Unstarted && !r.Gated && !r.Terminating:
		r.Gated, r.GatedSince = true, s.v.Now
	case r.Gated && !r.First:
		s.confirm(r)
	case r.Gated:
		return false
	default:
		s.end(r)
	}
	return true
}

// end ends a run, with the result that an image has that succeeds.
func (s *simulation) end(r *Run) {
	r.Unfinished = false
	r.Outcome = runs.Outcome{Verdict: contract.Done, Finished: s.v.Now}
	switch {
	case r.Terminating && (r.Unstarted || r.Stuck != nil && r.Stuck.Unstarted):
		r.Outcome.Verdict, r.Outcome.Reason = contract.NotStarted, runs.Cancelled
	case r.Terminating && r.Stuck != nil && r.Stuck.GiveUp:
		r.Outcome.Verdict, r.Outcome.MayRunUntil = contract.Disrupted, s.v.Now.Add(time.Minute)
	case r.Verb == contract.Provision:
		s.v.Volume = Volume{Exists: true, UID: "new", HasFinalizer: true, PolicyDelete: true}
	case r.Verb == contract.Expand:
		r.Grew = s.v.Resize.Stage.Wanted()
	}
}

// move makes one change that the dispatcher does not make. It returns false when there is none left.
func (s *simulation) move() bool {
	for i := range s.v.Runs {
		if r := &s.v.Runs[i]; r.Unfinished && s.moveRun(r) {
			return true
		}
	}
	for i := range s.v.Runs {
		if r := &s.v.Runs[i]; r.LostNode != "" {
			r.LostNode = "" // the node is Ready again
			return true
		}
	}
	for i := range s.v.Runs {
		if r := &s.v.Runs[i]; r.Others.Unrecorded {
			r.Others.Unrecorded = false // the outcomes of the other claims are recorded, too
			return true
		}
	}
	vol := &s.v.Volume
	switch {
	case vol.Attached != nil:
		vol.Attached = nil // the node has detached it
	case vol.Unclaimed != "":
		vol.Unclaimed, vol.Unproven = "", "" // an administrator names the claim
	case vol.Terminating && !vol.HasFinalizer && (vol.Released || vol.Unbound) && (isDone(s.v.reclaimRun()) || s.v.Delete.whyGivenUp() != ""):
		*vol = Volume{}
	case s.v.Claim == ClaimTerminating:
		s.v.Claim, vol.Mismatch, vol.NeverBound = ClaimGone, "", false
	case vol.Exists && s.v.Claim == ClaimPending && vol.Unproven == "" && vol.Mismatch == "":
		s.v.Claim = ClaimBound
	case vol.Exists && !vol.Released && s.v.Claim.Abandoned():
		vol.Released, vol.Orphaned, vol.Unbound, s.v.Resize = true, true, false, Resize{}
	case vol.Exists && vol.Released && !vol.Orphaned && s.v.Claim.Abandoned():
		vol.Orphaned = true
	case s.v.Provision.Probe != nil || s.v.Delete.Probe != nil:
		s.v.Provision.Probe, s.v.Delete.Probe = nil, nil // it has started
	case !s.v.Provision.HasSlot && s.v.Provision.Problem == nil:
		s.v.Provision.HasSlot = true
	default:
		return s.moveScheduler() || s.moveNode()
	}
	return true
}

// TestEveryViewLeadsToAnEnd starts from every combination of facts and lets the dispatcher and the
// simulation alternate until neither has a change to make. Then nothing may be left undone.
func TestEveryViewLeadsToAnEnd(t *testing.T) {
	const enough = 100
	views, bound, emptied := 0, 0, 0
	var runs []Run
	var log []Action
	every(t, func(v View) {
		if v.Delete.Problem != nil || !v.Delete.HasSlot || isImpossible(v) {
			return
		}
		views++
		runs = append(runs[:0], v.Runs...)
		s := simulation{v: v, log: log[:0]}
		s.v.Runs = runs
		for i := 0; s.step() || s.move(); i++ {
			if i > enough {
				t.Fatalf("no end after %d actions; the last ones %#v\nfrom %s\nto %s", enough, s.log[len(s.log)-6:], describe(v), describe(s.v))
			}
		}
		if wrong := leftUndone(s.v); wrong != "" {
			t.Fatalf("%s\nfrom %s\nto %s", wrong, describe(v), describe(s.v))
		}
		runs, log = s.v.Runs, s.log // the next view uses their memory
		switch {
		case s.v.Claim == ClaimBound && s.v.Volume.Exists:
			bound++
		case s.v.Claim == ClaimGone && !s.v.Volume.Exists:
			emptied++
		}
	})
	if bound == 0 || emptied == 0 {
		t.Errorf("of %d views %d ended bound and %d empty: the walk lacks facts", views, bound, emptied)
	}
	t.Logf("%d views, %d ended bound, %d empty", views, bound, emptied)
}

// isImpossible reports whether Kubernetes has no such view: the PV of a claim that is bound to it or pending is not
// released, unless it was created for another claim.
func isImpossible(v View) bool {
	return (v.Volume.Released || v.Volume.Orphaned) && !v.Claim.Abandoned() && v.Volume.Mismatch == ""
}

// needsAdministrator reports whether the dispatcher leaves the volume to an administrator.
func needsAdministrator(v View) bool {
	vol := v.Volume
	if v.Rival.Exists() || !v.Delete.Supported {
		return true
	}
	if vol.Mismatch == "" {
		return vol.Unproven != ""
	}
	return !vol.PolicyDelete || !vol.NeverBound && !vol.Orphaned
}

// leftUndone returns what an end lacks, or nothing.
func leftUndone(v View) string {
	exhausted := false
	for i := range v.Runs {
		r := &v.Runs[i]
		if r.Unfinished || r.Recorded == nil {
			return "a run's outcome was never recorded"
		}
		if r.PodKept {
			return "a pod still has our finalizer"
		}
		exhausted = exhausted || r.Verb == contract.Provision && r.Attempt >= v.Provision.MaxAttempts && v.Provision.MaxAttempts > 0
	}
	switch {
	case v.Claim == ClaimPending && v.Provision.Problem == nil && !exhausted && !needsAdministrator(v):
		return "a claim that could be provisioned was not"
	case !v.Claim.Abandoned():
		return missingSize(v)
	case v.Volume.Proven() && v.Volume.PolicyDelete && !needsAdministrator(v):
		return "a volume to be deleted is still there"
	}
	for i := range v.Runs {
		if v.Runs[i].Held && !v.Volume.Exists && !v.Rival.Exists() {
			return "a record is held that nothing needs"
		}
	}
	return ""
}
