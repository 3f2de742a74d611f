package observe

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

func (b *Observer) observeClaim(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	class := b.classOf(o.Claim)
	o.View.Claim = b.claimState(o.Claim, class, string(o.UID))
	o.View.Unasked = o.Claim != nil && o.Claim.Spec.VolumeName == "" && pvs.ProvisionerOf(o.Claim) == ""
	if o.View.Claim != decide.ClaimPending {
		return nil
	}
	if o.Provision, err = b.Provision(ctx, reader, o.Claim, class); err != nil {
		return err
	}
	o.View.Provision = o.Provision.Target
	o.SelectedNode = o.Provision.Node
	if o.View.Provision.Problem != nil {
		return nil
	}
	b.observeOtherNodes(o)
	src := o.Provision.Config.Source
	o.StoredRevision, o.NextRevision = b.Caches.Revisions.Named(src.Revision()), resolve.NewestNumber(b.Siblings(src))+1
	return nil
}

// classOf returns the class of a claim, nil without one.
func (b *Observer) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim == nil {
		return nil
	}
	return b.Caches.Classes.Named(storagehelpers.GetPersistentVolumeClaimClass(claim))
}

// IsPending reports whether a claim is to be provisioned now.
func (b *Observer) IsPending(claim *corev1.PersistentVolumeClaim) bool {
	return b.claimState(claim, b.classOf(claim), string(claim.UID)) == decide.ClaimPending
}

// claimState classifies a claim. It is pending if its class names our provisioner, and the PV
// controller has passed it on, or is about to. With WaitForFirstConsumer a node must be selected,
// too: the PV controller's annotation stays when the selected node is removed.
func (b *Observer) claimState(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, uid string) decide.Claim {
	switch {
	case claim == nil:
		return decide.ClaimGone
	case claim.Spec.VolumeName == contract.PVName(uid) && claim.Status.Phase == corev1.ClaimPending:
		return decide.ClaimNotOurs // until the PV controller has written the phase: a write in between makes it begin again
	case claim.Spec.VolumeName == contract.PVName(uid):
		return decide.ClaimBound
	case claim.Spec.VolumeName != "":
		return decide.ClaimBoundElsewhere
	case claim.DeletionTimestamp != nil:
		return decide.ClaimTerminating
	case !b.isOurs(claim, class):
		return decide.ClaimNotOurs
	default:
		return decide.ClaimPending
	}
}

// isOurs reports whether this dispatcher is to provision a claim now, or to say why it does not.
// Without its class it is not known whose the claim is.
func (b *Observer) isOurs(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	if class == nil || class.Provisioner != b.Provisioner || cluster.IsPopulated(claim) {
		return false
	}
	if resolve.IsLost(claim) { // Kubernetes selects no node for it, and asks for no volume
		asked := pvs.ProvisionerOf(claim)
		return asked == "" || asked == b.Provisioner
	}
	delayed := resolve.WaitsForNode(class)
	if delayed && claim.Annotations[storagehelpers.AnnSelectedNode] == "" {
		return false
	}
	if asked := pvs.ProvisionerOf(claim); asked != "" {
		return asked == b.Provisioner
	}
	return b.AheadOfBinder && !pvs.MayGetOther(claim, b.pvsFor(claim), delayed)
}

// pvsFor returns the PVs that Kubernetes may bind a claim to, as far as their class and their
// claimRef say.
func (b *Observer) pvsFor(claim *corev1.PersistentVolumeClaim) []*corev1.PersistentVolume {
	all := b.Caches.PVsOfUID(string(claim.UID))
	for _, claimant := range pvs.ClaimantsOf(claim) {
		all = append(all, b.Caches.PVs.By(cluster.ByUnclaimed, claimant)...)
	}
	return all
}

// reportedAfter is how long no problem of a claim is reported before the PV controller has asked
// for its volume. That controller's annotation makes another event of the same problem.
const reportedAfter = time.Minute

// ReportedFrom returns from when a problem is reported, zero for at once. The PV controller's
// annotation enqueues the claim.
func (o *Observation) ReportedFrom() time.Time {
	if o.Claim == nil || !o.View.Unasked {
		return time.Time{}
	}
	return o.Claim.CreationTimestamp.Add(reportedAfter)
}

// IsAsExpected reports whether a success is worth no event: the first run of a claim in a batch has
// done what it was to do. The claim and its annotations show that. Events of a burst would cost the
// API server as many requests as all else.
func (o *Observation) IsAsExpected(run decide.Run) bool {
	first := !slices.ContainsFunc(o.View.Runs, func(r decide.Run) bool { return r.Verb == run.Verb && r.Name != run.Name })
	return len(run.UIDs) > 1 && first && run.Attempt == 1 && run.Outcome.Verdict == contract.Done
}

// ClonedFrom returns the kind of what the claim's volume is a clone of, or nothing. It is unknown
// if the claim no longer exists.
func (o *Observation) ClonedFrom() string {
	if o.Claim == nil {
		return ""
	}
	if source := cluster.CloneSource(o.Claim); source.IsSnapshot || source.Name.Name == "" {
		return ""
	}
	return contract.SourceClaim
}

// NextAttempt says when the next attempt starts.
func (o *Observation) NextAttempt(d decide.RecordOutcome) string {
	full := d.Run.Verb == contract.Provision && d.Run.Outcome.Verdict == contract.NoCapacity
	next := reason.NextAttempt(d.Retry.Sub(d.Run.Outcome.Finished), full && o.View.Provision.NodeSelected)
	if d.Run.Verb == contract.Provision && d.Run.Outcome.Verdict == contract.BadRequest {
		next += reason.SameRequest
	}
	return next
}
