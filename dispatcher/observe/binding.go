package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

// How often a PV is looked at that a claim may be bound to, and for how long that is nothing to report. No change of that PV enqueues the claim. Nor is
// any other problem reported so soon, if the PV controller has not asked for the volume: its annotation makes another event of the same problem.
const (
	bindingRecheck = 2 * time.Second
	bindingAfter   = time.Minute
)

// pvsFor returns the PVs that Kubernetes may bind a claim to, as far as their class and their claimRef say.
func (b *Observer) pvsFor(claim *corev1.PersistentVolumeClaim) []*corev1.PersistentVolume {
	all := b.Caches.PVsOfUID(string(claim.UID))
	for _, claimant := range pvs.ClaimantsOf(claim) {
		all = append(all, b.Caches.UnclaimedPVs(claimant)...)
	}
	return all
}

// observeBinding returns the problem that Kubernetes may bind a pending claim to a PV that exists, or nil. A second volume would serve no claim. There is
// no such PV if the PV controller has asked for a new one, and a claim with a selector gets no new one.
func (b *Observer) observeBinding(o *Observation) *decide.Problem {
	claim := o.Claim
	if pvs.IsAskedFor(claim) || claim.Spec.Selector != nil {
		return nil
	}
	class := b.Caches.Class(storagehelpers.GetPersistentVolumeClaimClass(claim))
	match := pvs.Match(claim, b.pvsFor(claim), class != nil && resolve.WaitsForNode(class))
	if match == nil {
		return nil
	}
	since := match.CreationTimestamp
	if since.Before(&claim.CreationTimestamp) {
		since = claim.CreationTimestamp
	}
	problem := &decide.Problem{Note: notes.Binding(match.Name), RetryAfter: bindingRecheck}
	if o.View.Now.Sub(since.Time) >= bindingAfter {
		problem.Reason, problem.RetryAfter = reason.WaitingForBinding, bindingAfter/2
	}
	return problem
}

// ReportedFrom returns from when a problem is reported, zero for at once. The PV controller's annotation enqueues the claim.
func (o *Observation) ReportedFrom() time.Time {
	if o.Claim == nil || !o.View.Unasked {
		return time.Time{}
	}
	return o.Claim.CreationTimestamp.Add(bindingAfter)
}
