package decide

import (
	"fmt"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A write that was refused a moment ago is passed over where nothing that is safe depends on it, so that the claim is served all the same: a policy on old
// Jobs once kept a claim from its next attempt for ever. Any other write is decided on again, and tried again when the refusal is a minute old.

// WriteOf names the write of an action, by the kind of the action and its run.
func WriteOf(a Action) string {
	if f, sets := a.(SetFinalizer); sets {
		return fmt.Sprintf("%T remove=%t misnamed=%t", f, f.Remove, f.Misnamed)
	}
	return fmt.Sprintf("%T %s", a, RunOf(a))
}

// IsRefused reports whether the write of an action was refused a moment ago. A record is not released whose outcome
// could not be written: its Job would expire, and nothing would ever remove the finalizer of its pod.
func (v View) IsRefused(a Action) bool {
	if release, releases := a.(ReleaseRecord); releases && v.IsRefused(RecordOutcome{Run: release.Run}) {
		return true
	}
	return len(v.Refused) > 0 && slices.Contains(v.Refused, WriteOf(a))
}

// unlessRefused returns an action, or nil if its write was refused.
func (v View) unlessRefused(a Action) Action {
	if v.IsRefused(a) {
		return nil
	}
	return a
}

// isRecord reports whether a run is on record, and is needed there or can be released.
func (v View) isRecord(r *Run) bool {
	return r.Held && (len(v.Refused) == 0 || !v.isReplaced(r) || !v.IsRefused(ReleaseRecord{Run: *r}))
}

// isReplaced reports whether something else stands for what a run has made: the Job of a later run, or the PV. An undo
// that has succeeded does not: if its own record were released first, it would be launched again.
func (v View) isReplaced(r *Run) bool {
	return r.IsFix() || v.Newest(r.Verb).Number > r.Number || r.Verb == contract.Provision && v.Volume.Proven()
}

// isUnreleased reports whether the write that releases the record of a provision was refused. Without the PV that run counts as failed once its Job can be
// written, and is undone.
func (v View) isUnreleased() bool {
	return len(v.Refused) > 0 && slices.ContainsFunc(v.Runs, func(r Run) bool {
		return r.Held && r.Verb == contract.Provision && v.IsRefused(ReleaseRecord{Run: r})
	})
}
