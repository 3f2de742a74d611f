package observe

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// observeRival looks for a PV under another name that may stand for the UID's volume, now or by a note on a record or on the UID's PV. Such a
// PV may be bound to a claim, and then what the image deletes by the UID is in use.
func (b *Observer) observeRival(ctx context.Context, reader cluster.Reader, o *Observation) error {
	others, err := b.otherPVs(ctx, reader, o)
	if err != nil {
		return err
	}
	rival, since := decide.Rival{}, o.mayHaveMadeSince()
	for _, pv := range others {
		if isGivenUp(pv, string(o.UID)) && !pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner) {
			o.Misnamed, o.View.Misnamed = pv, true
		}
		if why := pvs.Rival(pv, o.PV, string(o.UID), since); why != "" && !rival.Exists() {
			rival.Name, rival.Why = pv.Name, why
		}
	}
	if name := o.notedRival(); name != "" && !rival.Exists() {
		rival.Name, rival.Why = name, "the PersistentVolume "+quote.Name(name)+" was found before, and may have stood for the volume"
	}
	rival.Remedy = o.remedyFor(rival)
	o.View.Rival = rival
	return nil
}

// isGivenUp reports whether a PV of the UID under another name has our finalizer although that keeps nothing: its policy is Retain, or an
// administrator has deleted it and no claim is bound to it.
func isGivenUp(pv *corev1.PersistentVolume, uid string) bool {
	carries := pv.Annotations[contract.AnnClaimUID]
	marked := carries == uid || carries == "" && pv.Spec.ClaimRef != nil && string(pv.Spec.ClaimRef.UID) == uid
	deleted := pv.DeletionTimestamp != nil && (pvs.IsReleased(pv) || pvs.IsUnbound(pv))
	return marked && pv.Name != contract.PVName(uid) && slices.Contains(pv.Finalizers, contract.FinalizerStorage) &&
		(deleted || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain)
}

// notedRival returns the name of the rival that is noted on a held record or on the UID's PV, or nothing.
func (o *Observation) notedRival() string {
	for _, r := range o.View.Runs {
		if r.Held && r.NotedRival != "" {
			return r.NotedRival
		}
	}
	return o.View.Volume.NotedRival
}

// remedyFor returns what an administrator can do about a rival.
func (o *Observation) remedyFor(rival decide.Rival) string {
	if !rival.Exists() {
		return ""
	}
	unneeded := "if no pod needs the volume, delete the PersistentVolume " + quote.Name(rival.Name)
	if o.View.Volume.Proven() {
		return "set the policy of the PersistentVolume " + o.PV.Name + " to Retain, and its volume is kept. Or, " + unneeded +
			", wait for it to go and remove the annotation " + jobs.AnnRival + " of " + o.PV.Name + ", and the volume is deleted"
	}
	held := o.View.NewestHeld(contract.Provision)
	if held == nil {
		return unneeded
	}
	job := o.Jobs[held.Name]
	return "annotate the Job " + job.Namespace + "/" + job.Name + " with " + jobs.AnnForget + "=" + string(o.UID) +
		": its record is given up, and the volume stays in the storage"
}

// otherPVs returns the PVs that carry the UID, name the claim or have the volume source of the UID's PV, that PV among them. The one that the
// claim is bound to must not be missed, so it is read by its name.
func (b *Observer) otherPVs(ctx context.Context, reader cluster.Reader, o *Observation) ([]*corev1.PersistentVolume, error) {
	out := b.Caches.PVsOfUID(string(o.UID))
	if o.PV != nil {
		out = append(out, b.Caches.PVs.By(cluster.ByVolumeSource, pvs.SourceKey(o.PV))...)
	}
	if o.Claim == nil || o.Claim.Spec.VolumeName == "" || o.Claim.Spec.VolumeName == contract.PVName(string(o.UID)) {
		return out, nil
	}
	pv, err := reader.PV(ctx, o.Claim.Spec.VolumeName)
	if pv != nil {
		out = append([]*corev1.PersistentVolume{pv}, out...)
	}
	return out, err
}

// mayHaveMadeSince returns when the first provision was created that may have made something, whatever its verdict; zero: none may have. A
// PV by hand for the volume of a run that failed is as much in use as one that the run wrote.
func (o *Observation) mayHaveMadeSince() time.Time {
	var since time.Time
	for _, r := range o.View.Runs {
		harmless := r.Unfinished && r.Unstarted || !r.Unfinished && r.NothingBefore && r.Outcome.Verdict.MadeNothing()
		if r.Verb == contract.Provision && !harmless && (since.IsZero() || r.Since.Before(since)) {
			since = r.Since
		}
	}
	return since
}
