package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// ownersOfVolume are the UIDs of the claim that a PV was written for and of the one that it names, mostly one.
func ownersOfVolume(obj any) ([]string, error) {
	pv := obj.(*corev1.PersistentVolume)
	owners := []string{pv.Annotations[contract.AnnClaimUID]}
	if ref := pv.Spec.ClaimRef; ref != nil && string(ref.UID) != owners[0] {
		owners = append(owners, string(ref.UID))
	}
	return owners, nil
}

// wakeOwners: a PV under another name may stand in the way of a UID's deletes.
func (c *Controller) wakeOwners(pv *corev1.PersistentVolume) {
	owners, _ := ownersOfVolume(pv)
	for _, uid := range owners {
		if c.caches.knows(uid) {
			c.queue.Add(types.UID(uid))
		}
	}
}

// knows tells whether there is a PV or a Job of ours for a UID.
func (s caches) knows(uid string) bool {
	if _, found, err := s.volumes.GetByKey(contract.PVName(uid)); err == nil && found {
		return true
	}
	for _, in := range s.spaces {
		if found, err := in.jobs.ByIndex(byUID, uid); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// seeStray looks for a PV of the UID under another name. It may be bound to the claim, and what the image
// deletes by the UID is then in use.
func (c *Controller) seeStray(ctx context.Context, look looker, o *observation) (string, error) {
	found, err := c.others(ctx, look, o)
	if err != nil {
		return "", err
	}
	since := o.claimed()
	for _, pv := range found {
		// One that says itself that it goes with its claim stands in nobody's way when that has gone.
		over := o.claim == nil && released(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		if stray := pvs.Rival(pv, string(o.uid), since); stray != "" && !over {
			return stray, nil
		}
	}
	return "", nil
}

// others are the PVs that have to do with the UID and go by another name. The one that the claim is bound to must
// not be missed: it is looked at by its name.
func (c *Controller) others(ctx context.Context, look looker, o *observation) ([]*corev1.PersistentVolume, error) {
	var out []*corev1.PersistentVolume
	if o.claim != nil && o.claim.Spec.VolumeName != "" && o.claim.Spec.VolumeName != contract.PVName(string(o.uid)) {
		pv, err := look.volume(ctx, o.claim.Spec.VolumeName)
		if err != nil {
			return nil, err
		}
		if pv != nil {
			out = append(out, pv)
		}
	}
	found, err := c.caches.volumes.ByIndex(byOwner, string(o.uid))
	for _, obj := range found {
		out = append(out, obj.(*corev1.PersistentVolume))
	}
	return out, err
}

// claimed is since when a run was there that ended as if it had written the UID's PV; zero: none was.
func (o *observation) claimed() time.Time {
	var since time.Time
	for _, r := range o.view.Runs {
		made := o.jobs[r.Name].CreationTimestamp.Time
		if r.Verb == contract.Provision && r.Outcome.Verdict == contract.Done && (since.IsZero() || made.Before(since)) {
			since = made
		}
	}
	return since
}
