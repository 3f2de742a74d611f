package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// observeResize finds what the claim that the volume serves asks for beyond what it has, and how far it has
// come. After a populator that is another claim than the one of the UID.
func (b *Observer) observeResize(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	if !o.View.Volume.Fits() {
		return nil
	}
	for i := range o.View.Runs {
		r := &o.View.Runs[i]
		reached := r.Reached(r.Outcome)
		r.Grew = reached != nil && reached.Cmp(*o.PV.Spec.Capacity.Storage()) > 0
	}
	if o.Holder, err = holderOf(ctx, reader, o); o.Holder == nil || err != nil {
		return err
	}
	o.Size = sizeFor(o.Holder)
	o.View.Resize = decide.Resize{Stage: stageOf(o.Holder, o.PV), Node: nodeWorkOf(o.PV)}
	if o.View.Resize.Stage.Wanted() {
		o.View.Expand = b.resolveExpand(o)
	}
	return nil
}

// holderOf is the claim that is bound to the volume and stays so, or nil.
func holderOf(ctx context.Context, reader cluster.Reader, o *Observation) (*corev1.PersistentVolumeClaim, error) {
	ref, claim := o.PV.Spec.ClaimRef, o.Claim
	if ref.UID == "" {
		return nil, nil //nolint:nilnil // nobody is bound to it
	}
	if claim == nil || claim.UID != ref.UID {
		var err error
		claim, err = reader.Claim(ctx, ref.UID, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		if claim == nil || err != nil {
			return nil, err
		}
	}
	if claim.Spec.VolumeName != o.PV.Name || claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
		return nil, nil //nolint:nilnil // as above
	}
	return claim, nil
}

func statusOf(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// sizeFor is the size that a claim's volume is to have. One that grows already may have reached the size
// that was asked for before the user lowered it: that is what its quota must count, until the storage
// has it or refuses it.
func sizeFor(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	size := *claim.Spec.Resources.Requests.Storage()
	begun := claim.Status.AllocatedResources.Storage()
	if statusOf(claim) == corev1.PersistentVolumeClaimControllerResizeInProgress && begun.Cmp(size) > 0 {
		return *begun
	}
	return size
}

// stageOf reads how far a growth has come. A claim that has what it asks for is of no interest, whatever
// an administrator has written on its PV.
func stageOf(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) decide.ResizeStage {
	size, status := sizeFor(claim), statusOf(claim)
	if status == "" && size.Cmp(*claim.Status.Capacity.Storage()) <= 0 {
		return decide.ResizeNone
	}
	switch {
	case status == corev1.PersistentVolumeClaimNodeResizeInProgress:
		return decide.ResizeLeftToNode // one after the other
	case size.Cmp(*pv.Spec.Capacity.Storage()) > 0:
		return wantedStage(claim, size)
	case status == corev1.PersistentVolumeClaimNodeResizePending, status == corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return decide.ResizeLeftToNode
	default:
		return decide.ResizeStored
	}
}

// wantedStage is what a claim says of a size that its volume has not yet. What it says of another size
// counts for nothing.
func wantedStage(claim *corev1.PersistentVolumeClaim, size resource.Quantity) decide.ResizeStage {
	said, status := claim.Status.AllocatedResources.Storage().Cmp(size) == 0, statusOf(claim)
	switch {
	case said && status == corev1.PersistentVolumeClaimControllerResizeInProgress:
		return decide.ResizeInProgress
	case said && status == corev1.PersistentVolumeClaimControllerResizeInfeasible:
		return decide.ResizeInfeasible
	default:
		return decide.ResizeRequested
	}
}

// nodeWorkOf is who grows the file system on a volume. The kubelet does so only for some sources, and
// some have none of their own.
func nodeWorkOf(pv *corev1.PersistentVolume) decide.NodeWork {
	s := pv.Spec.PersistentVolumeSource
	mode := pv.Spec.VolumeMode
	switch {
	case mode != nil && *mode == corev1.PersistentVolumeBlock:
		return decide.NodeNothing
	case s.CSI != nil, s.FlexVolume != nil, s.Local != nil:
		return decide.NodeKubelet
	case s.NFS != nil, s.HostPath != nil, s.CephFS != nil, s.Glusterfs != nil, s.AzureFile != nil, s.Quobyte != nil:
		return decide.NodeNothing // the storage's own file system: there is none on a device
	case isGrownByHand(pv):
		return decide.NodeNothing
	default:
		return decide.NodeByHand
	}
}

// grownByHand: whoever has grown the file system has said so on the PV, which no user can write.
func isGrownByHand(pv *corev1.PersistentVolume) bool {
	size, err := resource.ParseQuantity(pv.Annotations[contract.AnnFileSystem])
	return err == nil && size.Cmp(*pv.Spec.Capacity.Storage()) >= 0
}

// resolveExpand finds how the volume would be grown: under the revision that made it, as it would be
// deleted.
func (b *Observer) resolveExpand(o *Observation) decide.Target {
	t, cfg := o.Delete.Target, o.Delete.Config
	t.Revision, t.Hash, t.MaxAttempts = o.madeUnder(), jobs.SizeHash(o.Size), cfg.MaxAttempts
	if t.Problem != nil {
		return t
	}
	if t.Supported = cfg.Supports(contract.Expand); !t.Supported {
		t.Problem = problem(reason.ExpansionNotSupported, "the config %s/%s, in its revision that made the volume, does not list expand in its key verbs: "+
			"where its image can grow volumes, list it there, and name the new ControllerRevision in the annotation %s of the PersistentVolume %s",
			cfg.Source.Namespace, cfg.Source.Name, contract.AnnRevision, o.PV.Name)
		return t
	}
	if class := b.Caches.Class(o.PV.Spec.StorageClassName); class != nil && (class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion) {
		t.Problem = problem(reason.ExpansionNotSupported, "the class %s has no allowVolumeExpansion: true any more, and the config %s/%s grows no volume without it",
			class.Name, cfg.Source.Namespace, cfg.Source.Name)
	}
	return t
}

// growing tells whether a bound claim asks for more than it has.
func WantsMore(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && claim.Spec.Resources.Requests.Storage().Cmp(*claim.Status.Capacity.Storage()) > 0
}
