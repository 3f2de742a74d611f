package decide

import (
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// broken lists the laws that an action breaks, each named by what is wrong.
type broken []string

func (b *broken) law(wrong string, is bool) {
	if is {
		*b = append(*b, wrong)
	}
}

func laws(out *broken, v View, action Action) {
	out.law("no action", action == nil)
	switch a := action.(type) {
	case Launch:
		launchLaws(out, v, a)
	case Cancel:
		cancelLaws(out, v, a)
	case RemovePodFinalizer:
		out.law("removed the finalizer of a pod that is not there", !v.OrphanPod)
	case KeepVolume:
		keepVolumeLaws(out, v, a)
	case CreatePV:
		createPVLaws(out, v, a)
	case AnnounceReschedule:
		announceLaws(out, v, a)
	case Reschedule:
		rescheduleLaws(out, v)
	case RecordOutcome:
		recordLaws(out, v, a)
	case PublishResult:
		publishLaws(out, v, a)
	case ReleaseRecord:
		releaseLaws(out, v, a)
		if v.Delete.Supported {
			giveUpLaws(out, v, a.LeftBehind)
		}
	case SetFinalizer:
		finalizerLaws(out, v, a)
	case SetResizeStage:
		resizeLaws(out, v, a)
	case Confirm:
		confirmLaws(out, v, a)
	case DeletePV:
		deletePVLaws(out, v)
	case Wait:
		soon := v.Volume.Reserved != nil && a.Until.Equal(v.Volume.Reserved.From)
		out.law("left a PV alone and does not say why", !soon && v.Volume.State == Fits && v.Volume.Why != "" && v.Volume.HasFinalizer && !v.Volume.Terminating && len(v.Runs) == 0)
		out.law("waited for a stuck Job without a time to recheck", hasStuckRun(v) && a.Until.IsZero())
	case AwaitSlot:
		awaitSlotLaws(out, v, a)
	case StoreRevision:
		out.law("stored a revision under which no run starts now", v.Provision.RevisionStored || !v.Provision.HasSlot && !hasUnfinishedRun(v)) // its Job has the slot
	case ReportProblem:
	}
	rivalLaws(out, v, action)
	gatedLaws(out, v, action)
	batchLaws(out, v, action)
}

func keepVolumeLaws(out *broken, v View, a KeepVolume) {
	proven, onRecord := v.Volume.Proven(), a.Run.Name != ""
	waits := v.Volume.State == Mismatched && !v.Volume.PolicyDelete && v.Claim == ClaimPending // a retained PV that is kept from its claim
	out.law("kept a volume for which no other PV stands", v.WhyRival == "" && (proven || !v.Volume.Exists()) && !waits)
	out.law("noted a PV on a record that nobody needs, or twice", onRecord && (!a.Run.Held || a.Run.Rival != ""))
	out.law("kept by the wrong object", onRecord == (proven && !waits))
	out.law("set a retained PV to Retain", !onRecord && !v.Volume.PolicyDelete)
}

func createPVLaws(out *broken, v View, a CreatePV) {
	out.law("created a PV that exists", v.Volume.Exists())
	out.law("created a PV that is not on record", a.Run.Recorded == nil || !a.Run.Held || a.Run.Described == "")
	out.law("created a PV whose volume may have been undone", v.undoRun(&a.Run) != nil)
	out.law("created a PV although the run failed or is unfinished", a.Run.Unfinished || a.Run.Outcome.Verdict != contract.Done || a.Run.WhyNoPV != "")
}

func recordLaws(out *broken, v View, a RecordOutcome) {
	out.law("recorded success without a PV that fits its claim", a.Success && a.Run.Verb == contract.Provision && v.Volume.State != Fits)
	out.law("recorded success of an expand that made too little", a.Success && a.Run.Short(a.Run.Outcome))
	out.law("recorded the outcome of an unfinished run", a.Run.Unfinished)
	out.law("recorded a PV to be created that nobody needs, or that exists", a.Describes && (v.Claim != ClaimPending || v.Volume.Exists() || a.Success || a.Release))
	out.law("recorded an outcome twice", a.Run.Recorded != nil)
	undoes, provisions := a.Run.Verb == contract.Delete && a.Run.Volume == "", a.Run.Verb == contract.Provision
	out.law("released the record of an undo, or of a provision that is not proven, with its outcome", a.Release && (undoes || provisions && v.Volume.State != Fits))
	needed := undoes || provisions || a.Run.Terminating || a.Run.Outcome.Verdict == contract.NotStarted || !a.Success && v.whyLeftBehind(&a.Run) != ""
	out.law("kept the record of a run that needs none", !a.Release && !needed)
}

func publishLaws(out *broken, v View, a PublishResult) {
	out.law("published success without a PV that fits its claim", a.Success && v.Volume.State != Fits)
	out.law("published success on a claim that is not bound", a.Success && v.Claim != ClaimBound)
	out.law("published on a claim that no longer exists", v.Claim == ClaimGone)
}

func finalizerLaws(out *broken, v View, a SetFinalizer) {
	switch {
	case a.Misnamed:
		out.law("freed a PV that is not misnamed", !v.Misnamed)
		return
	case !a.Remove:
		out.law("added our finalizer to a retained PV", !v.Volume.PolicyDelete)
		out.law("added our finalizer to a terminating PV", v.Volume.Terminating)
		return
	}
	onRecord := !v.Volume.Proven() && slices.ContainsFunc(v.Runs, func(r Run) bool { return r.Verb == contract.Provision && r.Held })
	out.law("removed the finalizer of a PV whose volume was not deleted", v.Volume.PolicyDelete && !isDone(v.reclaimRun()) && a.LeftBehind == "" && !onRecord)
	out.law("said that a volume stays which is on record", onRecord && a.LeftBehind != "")
	if v.Volume.Proven() {
		giveUpLaws(out, v, a.LeftBehind)
	}
	out.law("removed the finalizer of a PV of another provisioner", v.Volume.State == Foreign)
	retained := !v.Volume.PolicyDelete
	out.law("let a retained PV go before the record of its provision", retained && slices.ContainsFunc(v.Runs, func(r Run) bool { return r.Verb == contract.Provision && r.Held && r.Rival == "" }))
	out.law("let a retained PV go on facts of caches that may miss a provision", retained && !v.Volume.RecordReleased && !a.NeedsLive)
}

func deletePVLaws(out *broken, v View) {
	out.law("deleted a PV whose volume was not deleted", !isDone(v.reclaimRun()) && v.Delete.whyGivenUp() == "")
	out.law("deleted the PV of a volume that is kept", !v.Volume.KeptUntil.IsZero() && !isDone(v.reclaimRun()))
	if v.Volume.Use != Released {
		deleteUnboundPVLaws(out, v)
	}
	out.law("deleted the PV of another provisioner", v.Volume.State == Foreign)
	out.law("deleted a retained PV", !v.Volume.PolicyDelete)
}

func hasUnfinishedRun(v View) bool {
	return slices.ContainsFunc(v.Runs, func(r Run) bool { return r.Unfinished })
}

func hasStuckRun(v View) bool {
	for i := range v.Runs {
		if r := &v.Runs[i]; r.Unfinished && r.Stuck != nil {
			return true
		}
	}
	return false
}

func launchLaws(out *broken, v View, a Launch) {
	out.law("deleted a volume that a rival PV may stand for", a.Verb == contract.Delete && v.WhyRival != "")
	out.law("deleted a volume that a node has attached", v.Volume.Attached != nil && a.Verb == contract.Delete && !a.Undo)
	out.law("deleted a volume that is kept", !v.Volume.KeptUntil.IsZero() && a.Verb == contract.Delete && !a.Undo)
	out.law("deleted a volume of which it is not known whose it is", v.Volume.State == Fits && v.Volume.Why != "" && a.Verb == contract.Delete && v.reclaimRun() == nil)
	nodeLaws(out, v, a)
	giveUpLaws(out, v, a.LeftBehind)
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("launched over an unfinished run", r.Unfinished)
		out.law("launched over a run without a recorded outcome", r.Recorded == nil)
		out.law("launched while a force-deleted pod may still run", v.Now.Before(r.Outcome.MayRunUntil) || r.LostNode != "")
		out.law("used a Job's name twice", r.Verb == a.Verb && r.Number >= a.Number)
	}
	out.law("launched again while the Job cannot start for which its own was cancelled", isHeldBack(v, a))
	switch {
	case a.Verb == contract.Expand:
		expandLaws(out, v)
	case a.Verb == contract.Provision:
		p := v.Newest(contract.Provision)
		out.law("provisioned for a claim that is not pending", v.Claim != ClaimPending)
		out.law("provisioned although a PV exists", v.Volume.Proven())
		out.law("launched without a config", v.Provision.Problem != nil)
		out.law("launched without a stored revision", !v.Provision.RevisionStored)
		out.law("launched beyond max-parallel", !v.Provision.HasSlot)
		out.law("provisioned under another target without an undo", p != nil && hasTargetChanged(p, v.Provision) && !v.madeNothing(p) && v.Delete.Supported && a.LeftBehind == "")
		out.law("claimed that nothing can be in the storage", a.NothingBefore && p != nil && !v.madeNothing(p))
		out.law("launched before the retry is due", p != nil && v.Now.Before(v.due(p, v.Provision)))
	case a.Undo:
		out.law("undid a proven provision", v.Volume.Proven())
		out.law("undid for a claim that may be bound to the volume", v.Claim != ClaimGone && v.Claim != ClaimBoundElsewhere && v.Claim != ClaimPending)
		out.law("undid without a provision", v.Newest(contract.Provision) == nil)
		out.law("undid without the verb delete", !v.Delete.Supported)
		out.law("undid although a PV exists, which may be in use", v.Volume.Exists())
	default:
		out.law("deleted without the verb delete", !v.Delete.Supported)
		last, deletedUnbound := v.reclaimRun(), v.Volume.IsUnbound() && v.Volume.Terminating
		goesOn := v.Volume.Terminating && last != nil && last.IsNeverBound()
		out.law("says wrongly whether a claim was ever bound to the PV", a.NeverBound != (v.Volume.Use == NeverBound || goesOn))
		out.law("shares the delete of a volume that is an undo", a.NeverBound && a.MayBatch)
		out.law("deleted a volume in use, or one to be kept", !mayDelete(v, launched(v, a)))
		out.law("deleted a volume whose PV a claim may be bound to", deletedUnbound && v.Volume.Use != NeverBound && v.reclaimRun() == nil)
		// No finalizer can be added to a terminating PV, and its volume must not stay behind.
		out.law("deleted without our finalizer on the PV", !v.Volume.HasFinalizer && !v.Volume.Terminating)
	}
}

func cancelLaws(out *broken, v View, a Cancel) {
	out.law("cancelled a Job that has finished or is terminating", !a.Run.Void && (!a.Run.Unfinished || a.Run.Terminating))
	switch {
	case a.Run.Gated, a.Run.Void:
		return // no container of it has started, see gatedLaws, or none will
	case a.Run.Unstarted && a.Run.Verb == contract.Delete && !mayDelete(v, a.Run):
		return
	case a.Run.Stuck == nil:
		out.law("cancelled a Job that is not stuck", true)
		return
	}
	out.law("cancelled a Job that may have started and may make progress", !a.Run.Idle)
	out.law("cancelled a Job that is still needed", !isObsolete(v, a.Run))
	out.law("cancelled a delete that may still start", a.Run.Verb == contract.Delete && !v.waitsForMissingNode(a.Run))
}

func awaitSlotLaws(out *broken, v View, a AwaitSlot) {
	target := v.Delete
	switch a.Verb {
	case contract.Provision:
		target = v.Provision
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	out.law("awaited a slot in spite of a problem: others would wait behind it", target.Problem != nil)
	out.law("awaited a slot that it has", target.HasSlot && a.Behind == nil)
	out.law("waits behind a Job that is not there", a.Behind != nil && target.Probe == nil)
	out.law("waits behind a Job that cannot start although its own was not cancelled", a.Behind != nil && !wasCancelled(v, a.Verb))
	out.law("awaited a slot before the retry is due: others would wait behind it", v.Now.Before(a.Due))
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("awaited a slot while a run is unfinished", r.Unfinished)
	}
}

// hasSuccessor reports whether the container of a later provision may have started.
func hasSuccessor(v View, r Run) bool {
	for i := range v.Runs {
		next := &v.Runs[i]
		waits := next.Unfinished && next.Unstarted
		if next.Verb == r.Verb && next.Number > r.Number && !waits && next.Outcome.Verdict != contract.NotStarted {
			return true
		}
	}
	return false
}

func releaseLaws(out *broken, v View, a ReleaseRecord) {
	out.law("released the record of an unfinished run", a.Run.Unfinished)
	out.law("released a record without an outcome", a.Run.Recorded == nil)
	out.law("released the record that a retained PV contradicts", a.LeftBehind == reason.LeftRetained && v.Volume.State == Unproven && !v.Volume.Terminating)
	given := a.LeftBehind == reason.LeftRetained && v.Volume.Terminating
	believed := a.Run.Verb == contract.Provision && v.Volume.Exists() && !v.Volume.Proven() && !given && !hasSuccessor(v, a.Run)
	out.law("released the record that an unproven PV contradicts", believed && a.Run.Outcome.Verdict != contract.NotStarted)
	last := v.Newest(a.Run.Verb)
	kept := v.Volume.Proven() && v.Volume.Terminating && v.Volume.HasFinalizer // the PV stays until its volume has been deleted
	if a.Run.Number == last.Number && a.Run.Verb == contract.Provision {
		out.law("lost the record of what may be in the storage", v.Volume.State != Fits && !kept && !v.madeNothing(last) && a.LeftBehind == "")
	}
	if neverRan := a.Run.Outcome.Verdict == contract.NotStarted && a.Run.Number < last.Number; a.Run.Verb == contract.Provision && !neverRan {
		out.law("lost the record to a run that never started", v.Volume.State != Fits && !kept && !v.madeNothing(&a.Run) && a.LeftBehind == "" && !hasSuccessor(v, a.Run))
	}
}
