package observe

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// observeResize finds what the claim of the volume asks for beyond what it has, and how far its
// resize is. After a populator that is another claim than the one of the UID.
func (b *Observer) observeResize(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	if o.View.Volume.State != decide.Fits {
		return nil
	}
	if o.Holder, err = holderOf(ctx, reader, o); err != nil {
		return err
	}
	if o.Holder != nil {
		o.Size, o.View.Resize = sizeFor(o.Holder, o.PV), stageOf(o.Holder, o.PV)
	}
	if e := o.View.Newest(contract.Expand); e != nil {
		if reached := e.Reached(e.Outcome); reached != nil && reached.Cmp(*o.PV.Spec.Capacity.Storage()) > 0 {
			o.View.Resize = decide.ResizeGrown
		}
	}
	if o.View.Resize.Wanted() {
		o.View.Expand = b.resolveExpand(o)
	}
	return nil
}

// holderOf returns the claim that is bound to the volume and not terminating, or nil.
func holderOf(ctx context.Context, reader cluster.Reader, o *Observation) (*corev1.PersistentVolumeClaim, error) {
	ref, claim := o.PV.Spec.ClaimRef, o.Claim
	if ref.UID == "" {
		return nil, nil //nolint:nilnil // no claim is bound to it
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

// sizeFor returns the size that a claim's volume is to have. A size that was begun is reached or
// refused before any other is tried, whatever the user requests meanwhile. The storage may have
// that size already, and only the claim's status names it. A larger request once took its place
// there and was refused, and a small one then hid from the quota what the volume had
// (TestALoweredRequestHidesNothingThatAFailedExpandHasGrown). The external-resizer lets the
// operation before finish, too (expandAndRecover in pkg/controller/expand_and_recover.go).
func sizeFor(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) resource.Quantity {
	begun := claim.Status.AllocatedResources.Storage()
	if statusOf(claim) != corev1.PersistentVolumeClaimControllerResizeInfeasible && begun.Cmp(*pv.Spec.Capacity.Storage()) > 0 {
		return *begun
	}
	return *claim.Spec.Resources.Requests.Storage()
}

// stageOf returns how far a resize is. A claim that has what it asks for is not resized, whatever
// an administrator has written on its PV.
func stageOf(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) decide.ResizeStage {
	size, status := sizeFor(claim, pv), statusOf(claim)
	if status == "" && size.Cmp(*claim.Status.Capacity.Storage()) <= 0 {
		return decide.ResizeNone
	}
	switch {
	case status == corev1.PersistentVolumeClaimNodeResizeInProgress:
		return leftToNode(pv) // the node's part of the resize before comes first
	case size.Cmp(*pv.Spec.Capacity.Storage()) > 0:
		return wantedStage(claim, size)
	case status == corev1.PersistentVolumeClaimNodeResizePending, status == corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return leftToNode(pv)
	case NodeWorkOf(pv) == NodeNothing:
		return decide.ResizeDone
	default:
		return decide.ResizeStored
	}
}

// leftToNode returns how far a resize is whose node's part the claim's status names.
func leftToNode(pv *corev1.PersistentVolume) decide.ResizeStage {
	if NodeWorkOf(pv) == NodeNothing {
		return decide.ResizeDone
	}
	return decide.ResizeNone
}

// wantedStage returns what a claim's status says about a size that its volume does not have yet.
// What it says about another size does not count.
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

// NodeWork is who expands a file system to the size of its volume.
type NodeWork int

// Who does the work on the node.
const (
	NodeNothing NodeWork = iota // there is nothing to do, or it has been done
	NodeKubelet                 // the kubelet, when the volume is mounted
	NodeByHand                  // an administrator: the kubelet does not expand file systems on such a volume
)

// NodeWorkOf returns who expands the file system on a volume. The kubelet does so only for some
// sources, and some sources have no file system of their own.
func NodeWorkOf(pv *corev1.PersistentVolume) NodeWork {
	s := pv.Spec.PersistentVolumeSource
	mode := pv.Spec.VolumeMode
	switch {
	case mode != nil && *mode == corev1.PersistentVolumeBlock:
		return NodeNothing
	case s.CSI != nil, s.FlexVolume != nil, s.Local != nil:
		return NodeKubelet
	case s.NFS != nil, s.HostPath != nil, s.CephFS != nil, s.Glusterfs != nil, s.AzureFile != nil, s.Quobyte != nil:
		return NodeNothing // the storage's own file system: there is none on a device
	case isGrownByHand(pv):
		return NodeNothing
	default:
		return NodeByHand
	}
}

// isGrownByHand reports whether an administrator has expanded the file system. The administrator
// says so on the PV, which no user can write.
func isGrownByHand(pv *corev1.PersistentVolume) bool {
	size, err := quantity.Parse(pv.Annotations[contract.AnnFileSystem])
	return err == nil && size.Cmp(*pv.Spec.Capacity.Storage()) >= 0
}

// resolveExpand finds how the volume would be expanded: under the config that would delete it.
func (b *Observer) resolveExpand(o *Observation) decide.Target {
	t, cfg := o.Delete.Target, o.Delete.Config
	t.Revision, t.Hash, t.MaxAttempts = cmp.Or(t.Revision, o.madeUnder()), jobs.SizeHash(o.Size), cfg.MaxAttempts
	if t.Problem != nil {
		return t
	}
	if t.Supported = cfg.Supports(contract.Expand); !t.Supported {
		t.Problem = decide.Problemf(reason.ExpansionNotSupported, "the revision of the config %s/%s that created the volume does not list expand in its key verbs",
			cfg.Source.Namespace, cfg.Source.Name).
			Remedyf("if its image can expand volumes, list expand there, and name the new ControllerRevision in the annotation %s of the PersistentVolume %s", contract.AnnRevision, o.PV.Name)
		return t
	}
	if class := b.Caches.Classes.Named(o.PV.Spec.StorageClassName); class != nil && (class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion) {
		t.Problem = decide.Problemf(reason.ExpansionNotSupported, "the class %s no longer has allowVolumeExpansion: true, and the config %s/%s expands no volume without it",
			class.Name, cfg.Source.Namespace, cfg.Source.Name).Remedyf("set it again")
	}
	return t
}
