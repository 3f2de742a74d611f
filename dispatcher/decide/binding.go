package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// A claim may be handed to the dispatcher before the PV controller has looked for a PV that exists. If there is one that it may bind to the
// claim, that is waited for: a second volume would serve nobody.

// How often a PV is looked at that a claim may be bound to, and for how long that is nothing to report. No change of that PV enqueues the claim.
const (
	bindingRecheck = 2 * time.Second
	bindingAfter   = time.Minute
)

// awaitBinding waits until Kubernetes has bound the claim to a PV that exists, or that PV to another claim.
func awaitBinding(v View) Action {
	if v.Now.Before(v.Binding.Since.Add(bindingAfter)) {
		return Wait{Until: v.Now.Add(bindingRecheck), Why: "the claim may be bound to the PersistentVolume " + v.Binding.PV}
	}
	return ReportProblem{Problem: Problem{Reason: reason.WaitingForBinding, Note: notes.Binding(v.Binding.PV)}, Until: v.Now.Add(bindingAfter / 2)}
}

// reportSpare reports a retained PV that was made for a claim while Kubernetes bound that to another. Any other retained PV is left alone.
func (v View) reportSpare() Action {
	if v.Claim == ClaimBoundElsewhere && v.Volume.Unbound && !v.Volume.Terminating {
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: notes.Spare}}
	}
	return Wait{Why: "the volume is retained"}
}
