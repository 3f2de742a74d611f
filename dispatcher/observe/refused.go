package observe

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// WriteOf names the write of an action, by the kind of the action and its run.
func WriteOf(action decide.Action) string {
	if f, sets := action.(decide.SetFinalizer); sets {
		return fmt.Sprintf("%T remove=%t misnamed=%t", f, f.Remove, f.Misnamed)
	}
	return fmt.Sprintf("%T %s", action, decide.RunOf(action))
}

// IsRefused reports whether the write of an action was refused a moment ago. A record is not released whose outcome
// could not be written: its Job would expire, and nothing would ever remove the finalizer of its pod.
func (h Hint) IsRefused(action decide.Action) bool {
	if release, releases := action.(decide.ReleaseRecord); releases && h.IsRefused(decide.RecordOutcome{Run: release.Run}) {
		return true
	}
	return slices.Contains(h.Refused, WriteOf(action))
}

// Merge returns what two hints say together, where they differ what the later one says.
func (h Hint) Merge(later Hint) Hint {
	if later.Unpublishable != "" {
		h.Unpublishable, h.Success = later.Unpublishable, later.Success
	}
	if later.RefusedPV != "" {
		h.RefusedPV, h.RefusedWhy = later.RefusedPV, later.RefusedWhy
	}
	h.UnseenRevision = cmp.Or(later.UnseenRevision, h.UnseenRevision)
	if later.Cancelled > 0 {
		h.Cancelled, h.NotBefore = later.Cancelled, later.NotBefore
	}
	if later.Returned > 0 {
		h.Returned, h.NoReturnBefore = later.Returned, later.NoReturnBefore
	}
	h.ReleasedFor = cmp.Or(later.ReleasedFor, h.ReleasedFor)
	h.Refused = append(slices.Clip(h.Refused), later.Refused...)
	return h
}

// applyRefused makes the View show as done what was refused and what nothing safe depends on, so that the claim is
// served all the same: a policy on old Jobs once kept a claim from its next attempt for ever.
func (o *Observation) applyRefused(hint Hint) {
	if len(hint.Refused) == 0 {
		return
	}
	vol := &o.View.Volume
	for i := range o.View.Runs {
		o.applyRefusedRun(hint, &o.View.Runs[i])
	}
	switch {
	case hint.IsRefused(decide.SetFinalizer{}) && !vol.Released:
		vol.HasFinalizer = true // a volume in use can grow without it
	case hint.IsRefused(decide.SetFinalizer{Remove: true}) && !vol.PolicyDelete:
		vol.HasFinalizer = false
	}
	o.View.OrphanPod = o.View.OrphanPod && !hint.IsRefused(decide.RemovePodFinalizer{})
	o.View.Misnamed = o.View.Misnamed && !hint.IsRefused(decide.SetFinalizer{Remove: true, Misnamed: true})
	if hint.IsRefused(decide.NoteRival{}) {
		vol.NotedRival = o.View.Rival.Name
	}
}

func (o *Observation) applyRefusedRun(hint Hint, r *decide.Run) {
	if hint.IsRefused(decide.RecordOutcome{Run: *r}) && r.Recorded == nil && !r.Unfinished {
		r.Recorded, r.PodKept = &r.Outcome, false // the pod stays, and so the outcome can be read again
	}
	if hint.IsRefused(decide.RemovePodFinalizer{Run: *r}) {
		r.PodKept = false
	}
	if hint.IsRefused(decide.NoteRival{Run: *r}) {
		r.NotedRival, o.View.Misnamed = o.View.Rival.Name, false // where no note of it stands, it has to stay
	}
	if hint.IsRefused(decide.ReleaseRecord{Run: *r}) {
		o.applyRefusedRelease(r)
	}
}

// applyRefusedRelease makes the View show as released a record that is not needed. The finalizer of the PV is needed as long as that record is held.
func (o *Observation) applyRefusedRelease(r *decide.Run) {
	vol := &o.View.Volume
	vol.Unreleased = vol.Unreleased || r.Held && r.Verb == contract.Provision
	r.Held = r.Held && !o.isReplaced(*r)
}

// isReplaced reports whether something else stands for what a run has made: the Job of a later run, or the PV. An undo
// that has succeeded does not: if its own record were released first, it would be launched again.
func (o *Observation) isReplaced(r decide.Run) bool {
	return r.IsFix() || o.View.Newest(r.Verb).Number > r.Number || r.Verb == contract.Provision && o.View.Volume.Proven()
}
