package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Every pod is created with a scheduling gate, and a run starts when the dispatcher removes it
// (confirmed). A Job may be created on facts that are old, or by two leaders at once. It is
// confirmed when the pods cache, which shows its pod and so every older one, shows no other pod of
// its claims that may run.

// confirmAfter is for how long a gate is nothing to report.
const confirmAfter = 30 * time.Second

// confirmRun says that the UID's gated run may start, or that it is not needed. Of two gated runs
// the later one is cancelled. A run that is not needed any more does not wait for what is in its
// way, since nothing of it has started.
func confirmRun(v View) Action {
	first, later := v.gatedRuns()
	switch {
	case first == nil:
		return nil
	case later != nil:
		return Cancel{Run: *later}
	case v.unreportedRun() != nil:
		return awaitGate(v, *first)
	case v.awaitsConsent(*first):
		return v.reportProblem(*v.Provision.Problem)
	}
	action := v.launchedAgain(*first)
	if _, ok := action.(Confirm); ok && (first.OtherPod != "" || first.ForeignGate || v.deletesAttached(*first)) {
		return awaitGate(v, *first)
	}
	return action
}

// gatedRuns returns the earliest gated run, and a later one, if there are any.
func (v View) gatedRuns() (first, later *Run) {
	for i := range v.Runs {
		r := &v.Runs[i]
		switch {
		case r.State() != RunGated:
		case first == nil:
			first = r
		case r.Created.Before(first.Created) || r.Created.Equal(first.Created) && r.Name < first.Name:
			first, later = r, first
		default:
			later = r
		}
	}
	return first, later
}

// askedAgain is for how long a batch waits until the consent to a clone is read again. That takes
// some seconds, and one tenant's clone once held up all others
// (TestTheGrantsOfATenantHoldUpNoClaimOfItsBatch).
const askedAgain = 10 * time.Second

// awaitsConsent reports whether a gated clone waits until it is known again that it may be made.
func (v View) awaitsConsent(r Run) bool {
	return v.Provision.ConsentUnknown && r.Verb == contract.Provision && (len(r.UIDs) < 2 || v.Now.Before(r.GatedSince.Add(askedAgain)))
}

// deletesAttached reports whether a run would delete the volume of a PV that is still attached.
func (v View) deletesAttached(r Run) bool {
	return v.Volume.Attached != nil && r.Verb == contract.Delete && !r.IsUndo()
}

// launchedAgain confirms a gated run that would be launched again as it is. It returns another
// action that comes before, or cancels the run. No write on a claim holds up the others of a batch:
// by editing its claim a user can make that write fail again and again. Whatever is to be written
// first, an expand to another size is not needed. A batch of deletes is cancelled as soon as one of
// them is not: what its container is given cannot be changed.
func (v View) launchedAgain(r Run) Action {
	if r.Verb == contract.Expand && hasChanged(&r, v.Expand) {
		return Cancel{Run: r, UnlessNeeded: true}
	}
	shared, next := len(r.UIDs) > 1, decideNext
	if shared {
		next = decideUnpublished
	}
	action := firstOf(v.asIfDue(r), createDescribed, next)
	_, resizes := action.(SetResizeStage)
	switch launch, launches := action.(Launch); {
	case launches && v.isSameRun(r, launch):
		return Confirm{Run: r, NeedsLive: v.needsLive(r)}
	case action.traits().gateWaits && (!shared || !resizes):
		return action
	default:
		return Cancel{Run: r, UnlessNeeded: r.Verb != contract.Delete}
	}
}

// asIfDue returns the View without a run, and with nothing in the way of another that only time
// takes away: no pause, a slot, and no attachment. A consent that is read again was known at the
// launch of the run, and holds until it is known to be refused.
func (v View) asIfDue(r Run) View {
	var others []Run
	for _, other := range v.Runs {
		if other.Name != r.Name {
			others = append(others, other)
		}
	}
	v.Runs = others
	v.Now = v.Now.Add(2 * longestPause)
	v = v.WithSlot()
	v.Volume.Attached = nil
	if v.Provision.ConsentUnknown {
		v.Provision.Problem = nil
	}
	return v
}

// isSameRun reports whether a launch that is decided now is the one that a gated run was created
// by. Numbers of runs and attempts may differ, since older Jobs expire.
func (v View) isSameRun(r Run, l Launch) bool {
	return r.Verb == l.Verb && r.AnyNode == l.AnyNode && (l.NothingBefore || !r.NothingBefore) && v.isSameRequest(r, l)
}

// isSameRequest reports whether a launch hands the container what a gated run does. An undo has the
// request of the newest provision.
func (v View) isSameRequest(r Run, l Launch) bool {
	switch {
	case r.Verb == contract.Provision:
		return !hasChanged(&r, v.Provision)
	case r.Verb == contract.Expand:
		return !hasChanged(&r, v.Expand)
	case l.Undo:
		return r.IsUndo() && r.After >= l.After && r.Revision == v.Delete.Revision
	default:
		return r.Volume == v.Volume.UID && r.Revision == v.Delete.Revision && (r.IsNeverBound() == l.NeverBound || r.IsNeverBound() && v.Volume.Terminating)
	}
}

// needsLive reports whether the caches do not prove enough for a confirmation. An undo deletes what
// no PV stands for, so nothing but the objects themselves shows that the volume is not in use.
// After a run that failed, a claim that no longer exists would be provisioned and undone again and
// again while the cache of claims is behind. And a clone would be made of a volume of which a
// delete has left a part.
func (v View) needsLive(r Run) bool {
	switch r.Verb {
	case contract.Provision:
		return v.Contested || len(v.Runs) > 1 || r.Clones
	case contract.Delete:
		return v.Contested || r.IsUndo()
	default:
		return v.Contested
	}
}

// awaitGate waits until a gated run may be confirmed, and reports after a while what is in the way.
func awaitGate(v View, r Run) Action {
	tell := r.GatedSince.Add(confirmAfter)
	if v.Now.Before(tell) {
		return Wait{Until: tell, Why: "the Job " + r.Name + " is not confirmed yet"}
	}
	p := *Problemf(reason.RunNotConfirmed, "the Job %s is not confirmed yet: ", r.Name)
	switch unreported := v.unreportedRun(); {
	case r.OtherPod != "" && r.LostNode != "":
		p = lostNodeProblem("the pod "+r.OtherPod, r.LostNode)
	case r.OtherPod != "":
		p.Note.Cause += "the pod " + r.OtherPod + " of the same claim may still run. The Job starts when that pod has ended"
		p.Note.Remedy = "only if that pod has a scheduling gate and its Job no longer exists: delete that pod"
	case unreported != nil:
		p = unreportedProblem(*unreported)
	case v.deletesAttached(r):
		p = *v.Volume.Attached
	default:
		p.Note.Cause += "its pod has scheduling gates of other controllers, which must remove them"
	}
	until := r.RecheckAt
	if until.IsZero() {
		until = v.Now.Add(confirmAfter)
	}
	return ReportProblem{Problem: p, Until: until}
}

// unreportedRun returns the run whose container may still be running without a report from its
// node. Of several it is one whose node is lost, or else the one with the latest deadline. It
// returns nil if there is none.
func (v View) unreportedRun() *Run {
	var last *Run
	for i := range v.Runs {
		if r := &v.Runs[i]; v.mayStillRun(r) && (last == nil || mayRunLonger(r, last)) {
			last = r
		}
	}
	return last
}

// mayStillRun reports whether a container of a run that has ended may still be running: until its
// pod's own deadline, and longer while its node is lost.
func (v View) mayStillRun(r *Run) bool {
	until := r.Outcome.MayRunUntil
	return !until.IsZero() && (r.LostNode != "" || v.Now.Before(until))
}

func mayRunLonger(r, than *Run) bool {
	if (r.LostNode == "") != (than.LostNode == "") {
		return r.LostNode != ""
	}
	return r.Outcome.MayRunUntil.After(than.Outcome.MayRunUntil)
}

// unreportedProblem returns why nothing is launched after a run whose pod was deleted by force.
func unreportedProblem(r Run) Problem {
	if r.LostNode != "" {
		return lostNodeProblem("the pod of the Job "+r.Name, r.LostNode)
	}
	return *Problemf(reason.WaitingForNode, "%s", reason.EndUnreported(r.Name, r.Outcome.MayRunUntil))
}

// lostNodeProblem returns why nothing is started while the node of a pod that was deleted by force
// is not Ready.
func lostNodeProblem(pod, node string) Problem {
	return Problem{Reason: reason.WaitingForNode, Note: reason.LostNode(pod, node)}
}

// cancelUnstarted cancels a run that has not started, with its pod, when the reason for it no
// longer exists. Its container may start at any moment, so only keepVolume comes before, whose
// reason may vanish as soon: see About.
func cancelUnstarted(v View) Action {
	for _, r := range v.Runs {
		if r.Void || v.isDeleteRevoked(r) {
			return Cancel{Run: r}
		}
	}
	return nil
}

// awaitRuns waits while a run is unfinished. A gated one waits itself, see confirmRun.
func awaitRuns(v View) Action {
	for _, r := range v.Runs {
		switch state := r.State(); {
		case state == RunGated || state >= RunEnded:
		case r.Stuck != nil:
			return handleStuck(v, r)
		default:
			return Wait{Until: r.RecheckAt, Why: "the Job " + r.Name + " runs"}
		}
	}
	return nil
}

// handleStuck decides about a run that makes no progress.
func handleStuck(v View, r Run) Action {
	if r.Idle && isObsolete(v, r) {
		return Cancel{Run: r, UnlessNeeded: true}
	}
	return ReportProblem{Problem: *r.Stuck, Until: r.RecheckAt}
}

// isDeleteRevoked reports whether the reason of a delete no longer exists before a container of it
// has started. Its volume is to be kept, is in use, or may be that of another PV. Such a Job is
// cancelled with all that it was to delete, since what its container is given cannot be changed any
// more. A gated one is judged by confirmRun. A pod that waited for its image once deleted a volume
// that had been set to Retain and bound again meanwhile
// (TestReclaimByPVIsCancelledWithoutItsReason).
func (v View) isDeleteRevoked(r Run) bool {
	switch {
	case r.Verb != contract.Delete || r.State() != RunStarting || r.Terminating:
		return false
	case v.WhyRival != "":
		return true
	case r.IsUndo():
		return v.Volume.Exists()
	default:
		return !v.isToBeDeleted(r.Volume)
	}
}

// RevokedDeletes returns the runs of deletes that are to be cancelled before a container of theirs
// starts.
func (v View) RevokedDeletes() (all []Run) {
	for _, r := range v.Runs {
		if v.isDeleteRevoked(r) {
			all = append(all, r)
		}
	}
	return all
}

// ForJob returns what a claim says about a Job. The write that keeps a volume may hang, or fail,
// while the pod that deletes this volume starts. So such a delete is cancelled beside that write,
// and not after it.
func ForJob(v View, job string) Action {
	action := Decide(v)
	if _, ok := action.(KeepVolume); ok {
		for _, r := range v.RevokedDeletes() {
			if r.Name == job {
				return Cancel{Run: r}
			}
		}
	}
	return action
}

// isToBeDeleted reports whether a UID is that of the PV whose volume is to be deleted, since its
// claim no longer needs it or can never be bound to it.
func (v View) isToBeDeleted(uid string) bool {
	vol := v.Volume
	if vol.State <= Foreign || vol.UID != uid || !vol.PolicyDelete {
		return false
	}
	return vol.Use == Released || vol.IsUnbound() && (vol.Terminating || v.isReplaceable())
}

// IsUnbound reports whether no claim is or was bound to the PV.
func (v Volume) IsUnbound() bool { return v.Use == Unbound || v.Use == NeverBound }

// isReplaceable reports whether the PV of a pending claim is deleted with its volume, since that
// claim can never be bound to it and no other is.
func (v View) isReplaceable() bool {
	vol := v.Volume
	return v.Claim == ClaimPending && vol.State == Mismatched && vol.PolicyDelete && (vol.Use == NeverBound || vol.Use == Released)
}

// isObsolete reports whether the claim no longer needs a stuck run, or would launch a different one
// now. A run whose pod has started is still waited for, since it may have made something. An undo
// with the same image, on the same nodes, would start no better, so it is not obsolete.
func isObsolete(v View, r Run) bool {
	switch {
	case v.waitsForMissingNode(r):
		return true
	case r.Verb == contract.Expand:
		return !v.Resize.Wanted() || wouldDiffer(r, v.Expand)
	case r.Verb == contract.Provision:
		return v.Claim.Abandoned() || v.Claim == ClaimTerminating || v.Claim == ClaimPending && (wouldDiffer(r, v.Provision) || v.Provision.ExcludedNode != "")
	default:
		return false
	}
}

// waitsForMissingNode reports whether a run waits for a node that no longer exists.
func (v View) waitsForMissingNode(r Run) bool {
	target := v.Delete
	switch r.Verb {
	case contract.Provision:
		target = v.Provision
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	return target.Problem == nil && target.MissingNode != "" && !r.AnyNode
}

// wouldDiffer reports whether a run would be launched now with another request, config or node.
func wouldDiffer(r Run, t Target) bool { return t.Problem == nil && hasChanged(&r, t) }

// hasChanged reports whether a run would be launched now with another request than it had. A delete
// never changes, and an expand goes to the volume's nodes, whichever node the claim names.
func hasChanged(r *Run, t Target) bool {
	switch r.Verb {
	case contract.Provision:
		return hasTargetChanged(r, t) || hasRequestChanged(r, t)
	case contract.Expand:
		return hasRequestChanged(r, t)
	default:
		return false
	}
}

// hasTargetChanged reports whether the target has another config or another node than the run.
func hasTargetChanged(r *Run, t Target) bool { return r.Revision != t.Revision || r.Node != t.Node }

// hasRequestChanged reports whether the claim asks for something else than the run was to make, or
// another config serves it.
func hasRequestChanged(r *Run, t Target) bool {
	return r.Revision != t.Revision || !jobs.SameRequest(r.Hash, t.Hash)
}

// Wanted reports whether the volume is, or was just now, smaller than it is to be.
func (s ResizeStage) Wanted() bool { return s >= ResizeRequested && s <= ResizeGrown }

// Abandoned reports whether no volume of this UID will ever serve the claim.
func (c Claim) Abandoned() bool { return c == ClaimGone || c == ClaimBoundElsewhere }
