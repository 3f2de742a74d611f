package resolve

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// grantRetry is how soon the consent of a namespace is read again, since grants are not watched.
const grantRetry = time.Minute

// resolveSource finds what a claim's volume is to be cloned from. The source's PV is found through
// the source claim's binding, never through what a user can write. Otherwise a user could read any
// volume of the storage. A problem beside the source is that the consent of its namespace is not known.
func (f *Resolver) resolveSource(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*contract.Source, *decide.Problem) {
	asked := cluster.CloneSource(claim)
	name := asked.Name
	switch {
	case asked.IsSnapshot:
		return nil, decide.Problemf(reason.SnapshotNotSupported, "only a CSI driver can restore a VolumeSnapshot").Remedyf("delete the claim, and create it again as the clone of a claim")
	case name.Name == "":
		return nil, nil
	}
	source := f.Caches.Claims.Named(name.String())
	consent, unknown := f.refuseSource(ctx, name, claim.Namespace, source != nil)
	if consent != nil && !unknown {
		return nil, consent
	}
	if source == nil {
		return nil, decide.Problemf(reason.SourceNotFound, "the source claim %s does not exist", quote.Name(name.String())).Remedyf("create it. Or delete this claim, and create it again with another source")
	}
	pv := f.boundPV(source)
	if pv == nil {
		p := decide.Problemf(reason.SourceNotBound, "the source claim %s is not bound yet. The clone is made when it is", name)
		if source.Status.Phase == corev1.ClaimBound { // its PV is seen later, and enqueues no clones
			p.RetryAfter = 5 * time.Second
		}
		return nil, p
	}
	if p := cmp.Or(f.refuseProvisioner(name, pv), refuseMode(claim, name, pv)); p != nil {
		return nil, p
	}
	return &contract.Source{Kind: contract.SourceClaim, Namespace: name.Namespace, Name: name.Name, UID: string(source.UID), PVName: pv.Name}, consent
}

// boundPV returns the PV that a claim is bound to, or nil. A user can write spec.volumeName on a
// claim, so only the PV's claimRef decides which claim the PV belongs to. A released PV says that its
// claim does not exist, which the watch of claims may show later: a volume was once cloned while it was
// being deleted (TestACloneIsNotStartedWhileItsSourceIsBeingDeleted).
func (f *Resolver) boundPV(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := f.Caches.PVs.Named(claim.Spec.VolumeName)
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID || claim.Status.Phase != corev1.ClaimBound || pvs.IsReleased(pv) {
		return nil
	}
	return pv
}

// refuseProvisioner returns the problem that another provisioner has made the volume of a source. It
// also deletes that, and knows nothing of what this dispatcher clones.
func (f *Resolver) refuseProvisioner(source types.NamespacedName, pv *corev1.PersistentVolume) *decide.Problem {
	if !pvs.OfAnotherProvisioner(pv.Annotations, f.Provisioner) {
		return nil
	}
	return decide.Problemf(reason.SourceRefused, "the volume of the source claim %s belongs to the provisioner %s, which could delete it while %s clones it",
		source, quote.Name(pv.Annotations[contract.AnnProvisionedBy]), f.Provisioner).
		Remedyf("delete the claim, and create it again with a class of that provisioner, or without a source")
}

// refuseMode returns the problem that a claim has another volumeMode than its source. A pod writes
// any bytes to a raw device, and the kubelet would mount them: a file system that a user wrote can stop
// the node's kernel. external-provisioner refuses the same (getPVCSource in its pkg/controller/controller.go).
func refuseMode(claim *corev1.PersistentVolumeClaim, source types.NamespacedName, pv *corev1.PersistentVolume) *decide.Problem {
	has, asks := ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem), ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if has == asks {
		return nil
	}
	return decide.Problemf(reason.SourceModeDiffers, "the source claim %s has the volumeMode %s, and the claim requests %s", source, has, asks).
		Remedyf("delete the claim, and create it again with that of its source")
}

// refuseSource returns the problem that another namespace does not allow its claim to be cloned, or
// that it is not known whether it does. The first is the same problem if no such claim exists there, so
// that it names no claim. How long it takes does: the name, which a user wrote, goes into a request only
// if a claim has it.
func (f *Resolver) refuseSource(ctx context.Context, source types.NamespacedName, to string, found bool) (p *decide.Problem, unknown bool) {
	if source.Namespace == to {
		return nil, false
	}
	p = decide.Problemf(reason.SourceRefused, "the source claim %s is in another namespace, which must consent by a "+
		"gateway.networking.k8s.io ReferenceGrant from PersistentVolumeClaims of %s to the claim. Of many ReferenceGrants there only the first 100 are read, and "+
		"fewer if they have more than 1 MiB", quote.Name(source.String()), to).Remedyf("create one there, and merge some if there are more")
	p.RetryAfter = grantRetry
	if !found {
		return p, false
	}
	allowed, again, err := f.Caches.AllowsClone(ctx, source, to)
	switch {
	case allowed:
		return nil, false
	case err != nil:
		p.Note = reason.Note{Cause: fmt.Sprintf("it is not known whether the namespace of the source claim %s consents: %v", source, err)}
	}
	p.From = again
	return p, err != nil || !again.IsZero()
}
