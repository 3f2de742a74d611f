package decide

import (
	"fmt"
)

// What an administrator's audit asks for. Its command makes a Job, gated like every other, and the dispatcher confirms or cancels it.

// confirmList confirms a Job that lists what a storage has, or cancels it. A list changes nothing, so no claim or volume is in its way, and it waits for
// no slot: an audit must be possible also while a class uses all of them. But those of one config run one after the other.
func confirmList(v View) Action {
	r := v.List
	if r == nil {
		return nil
	}
	switch why := v.whyNotListed(*r); {
	case why != "":
		return Cancel{Run: *r, Why: why}
	case r.OtherPod != "" || r.ForeignGate:
		return awaitGate(v, *r)
	default:
		return Confirm{Run: *r}
	}
}

// whyNotListed returns why a list is not run, or nothing.
func (v View) whyNotListed(r Run) string {
	if why := v.whyNotUnder(r); why != "" {
		return why
	}
	if r.Void {
		return "it was not confirmed in time"
	}
	return ""
}

// whyNotUnder returns why a Job of an audit cannot run under the config for which it was made, or nothing.
func (v View) whyNotUnder(r Run) string {
	switch t := v.Audit; {
	case t.Problem != nil:
		return t.Problem.Note
	case t.Revision != r.Revision:
		return fmt.Sprintf("it was made under the config revision %s, and the class has %s now", r.Revision, t.Revision)
	case !t.Supported:
		return fmt.Sprintf("the config revision %s does not serve the verb %s", r.Revision, r.Verb)
	default:
		return ""
	}
}

// mayFix reports whether a gated delete of an audit may start.
func (v View) mayFix(r Run) Readiness {
	if v.whyNotFixed(r) == "" {
		return Ready
	}
	return Unwanted
}

// whyNotFixed returns why an audit's delete is not run, or nothing. It is run only for a claim that does not exist any more, where neither a PV nor a record
// stands for the volume. Everything else has a road of its own.
func (v View) whyNotFixed(r Run) string {
	switch other := v.besideFix(r); {
	case v.Claim != ClaimGone:
		return "the claim of the volume exists"
	case v.Volume.Exists():
		return "the PersistentVolume of the volume exists"
	case v.Rival != "":
		return v.Rival
	case r.Retain:
		return "its class has the reclaimPolicy Retain: the volume may be kept on purpose"
	case other != nil:
		return "the Job " + other.Name + " of the same claim is not over: the dispatcher deletes what it may have made"
	default:
		return v.whyNotUnder(r)
	}
}

// besideFix returns another run that is not over, or that is a record, or nil.
func (v View) besideFix(r Run) *Run {
	return v.newest(func(other *Run) bool {
		return other.Name != r.Name && (other.Unfinished || other.Recorded == nil || v.isRecord(other) && !other.IsFix())
	})
}

// whyCancelled returns what an event says of an audit's delete that is cancelled, nothing of any other run.
func (v View) whyCancelled(r Run) string {
	switch {
	case !r.IsFix():
		return ""
	case r.Void:
		return "it was not confirmed in time"
	default:
		return v.whyNotFixed(r)
	}
}
