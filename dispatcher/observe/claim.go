package observe

import (
	"context"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

func (b *Observer) observeClaim(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	o.View.Claim = b.claimState(o.Claim, string(o.UID))
	if o.View.Claim != decide.ClaimPending {
		return nil
	}
	if o.Provision, err = b.Provision(ctx, reader, o.Claim); err != nil {
		return err
	}
	o.View.Provision = o.Provision.Target
	o.SelectedNode = o.Provision.Node
	if o.View.Provision.Problem != nil {
		return nil
	}
	b.observeOtherNodes(o)
	src := o.Provision.Config.Source
	o.StoredRevision, o.NextRevision = b.Caches.Revision(src.Revision()), resolve.NewestNumber(b.Siblings(src))+1
	return nil
}

// claimState classifies a claim. It is pending if its class names our provisioner, the PV controller has passed it on
// and, with WaitForFirstConsumer, a node is selected. The PV controller's annotation alone is not enough, since it
// stays when the selected node is removed.
func (b *Observer) claimState(claim *corev1.PersistentVolumeClaim, uid string) decide.Claim {
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
	case !b.isOurs(claim):
		return decide.ClaimNotOurs
	default:
		return decide.ClaimPending
	}
}

// isOurs reports whether this dispatcher is to provision a claim now.
func (b *Observer) isOurs(claim *corev1.PersistentVolumeClaim) bool {
	provisioner := claim.Annotations[storagehelpers.AnnStorageProvisioner]
	if provisioner == "" {
		provisioner = claim.Annotations[storagehelpers.AnnBetaStorageProvisioner]
	}
	class := b.Caches.Class(storagehelpers.GetPersistentVolumeClaimClass(claim))
	if class == nil || class.Provisioner != b.Provisioner || provisioner != b.Provisioner || cluster.IsPopulated(claim) {
		return false
	}
	return !resolve.WaitsForNode(class) || claim.Annotations[storagehelpers.AnnSelectedNode] != ""
}

// Result returns the annotations of a claim that report a run. The message has only the lines that are meant for the
// user.
func Result(run decide.Run, success bool, pv *corev1.PersistentVolume) map[string]string {
	out := map[string]string{
		contract.AnnProvisionTS: run.Outcome.Finished.UTC().Format(time.RFC3339),
		contract.AnnAttempts:    strconv.Itoa(run.Attempt),
		contract.AnnResult:      "failed",
		contract.AnnExitCode:    "",
		contract.AnnMessage:     contract.ForClaim(run.Outcome.Message),
	}
	if success {
		out[contract.AnnResult] = "succeeded"
		if source := pv.Annotations[contract.AnnCloneOf]; source != "" {
			out[contract.AnnClaimCloneOf] = source
		}
	}
	if code := run.Outcome.ExitCode; code != nil {
		out[contract.AnnExitCode] = strconv.Itoa(int(*code))
	}
	return out
}

// isPublished reports whether a claim has these very annotations, as far as the caches keep them.
func isPublished(claim *corev1.PersistentVolumeClaim, want map[string]string) bool {
	if claim == nil {
		return false
	}
	got := maps.Clone(claim.Annotations)
	maps.DeleteFunc(got, func(key, _ string) bool { _, wanted := want[key]; return !wanted })
	return maps.EqualFunc(got, want, func(a, b string) bool { return jobs.Abridge(a) == jobs.Abridge(b) })
}

// ClonedFrom returns the kind of what the claim's volume is a clone of, or nothing. It is unknown if the claim no
// longer exists.
func (o *Observation) ClonedFrom() string {
	if o.Claim == nil {
		return ""
	}
	if source := cluster.CloneSource(o.Claim); source.IsSnapshot || source.Name.Name == "" {
		return ""
	}
	return contract.SourceClaim
}
