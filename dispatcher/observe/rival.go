package observe

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// observeRival looks for a PV under another name that may stand for the UID's volume, now or by a
// note on a record. Such a PV may be bound to a claim, and then what the image deletes by the UID
// is in use. The UID's own PV may be such a one, too, if it proves no run.
func (b *Observer) observeRival(ctx context.Context, reader cluster.Reader, o *Observation) error {
	others, err := b.otherPVs(ctx, reader, o)
	if err != nil {
		return err
	}
	since := o.mayHaveMadeSince()
	for _, pv := range others {
		if isGivenUp(pv, string(o.UID)) && !pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner) {
			o.Misnamed, o.View.Misnamed = pv, true
		}
		if why := pvs.WhyRival(pv, o.PV, string(o.UID), since); why != "" && o.Rival == "" {
			o.Rival, o.View.WhyRival = pv.Name, why
		}
	}
	if o.Rival == "" {
		o.observeNotedRival()
		return nil
	}
	for i := range o.View.Runs { // the UID's own PV is only noted as long as no other is known
		if o.View.Runs[i].Rival == contract.PVName(string(o.UID)) {
			o.View.Runs[i].Rival = ""
		}
	}
	return nil
}

// observeNotedRival finds a rival by the note on a held record, or in the UID's own PV.
func (o *Observation) observeNotedRival() {
	switch noted := o.notedRival(); {
	case o.PV != nil && (noted == "" || noted == o.PV.Name):
		o.Rival = o.PV.Name
	case noted != "":
		o.Rival, o.View.WhyRival = noted, "the PersistentVolume "+quote.Name(noted)+" was found before, and may have stood for the volume"
	}
}

// isGivenUp reports whether a PV of the UID under another name has our finalizer although that
// keeps nothing. Its policy is Retain, or an administrator has deleted it and no claim is bound to
// it.
func isGivenUp(pv *corev1.PersistentVolume, uid string) bool {
	carries := pv.Annotations[contract.AnnClaimUID]
	marked := carries == uid || carries == "" && pv.Spec.ClaimRef != nil && string(pv.Spec.ClaimRef.UID) == uid
	deleted := pv.DeletionTimestamp != nil && (pvs.IsReleased(pv) || pvs.IsUnbound(pv))
	return marked && pv.Name != contract.PVName(uid) && slices.Contains(pv.Finalizers, contract.FinalizerStorage) &&
		(deleted || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain)
}

// notedRival returns the name of the PV that is noted on a held record, or nothing.
func (o *Observation) notedRival() string {
	for _, r := range o.View.Runs {
		if r.Held && r.Rival != "" {
			return r.Rival
		}
	}
	return ""
}

// otherPVs returns the PVs that carry the UID, name the claim or have the volume source of the
// UID's PV, that PV among them. The one that the claim is bound to must not be missed, so it is
// read by its name.
func (b *Observer) otherPVs(ctx context.Context, reader cluster.Reader, o *Observation) ([]*corev1.PersistentVolume, error) {
	out := b.Caches.PVsOfUID(string(o.UID))
	if o.PV != nil {
		out = append(out, b.Caches.PVsOfSource(o.PV)...)
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

// mayHaveMadeSince returns when the first provision was created that may have made something, zero
// if none may have. Its verdict does not count: a PV by hand for the volume of a run that failed is
// as much in use as one that the run wrote.
func (o *Observation) mayHaveMadeSince() time.Time {
	var since time.Time
	for _, r := range o.View.Runs {
		harmless := r.State() <= decide.RunStarting || r.State() >= decide.RunEnded && r.NothingBefore && r.Outcome.Verdict.MadeNothing()
		if r.Verb == contract.Provision && !harmless && (since.IsZero() || r.Since.Before(since)) {
			since = r.Since
		}
	}
	return since
}
