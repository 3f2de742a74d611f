package sim_test

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// checkRest checks a world that is at rest: each claim that lives has its volume, and of those that do not exist any more nothing is left but what was retained.
func (w *world) checkRest() {
	live := map[string]bool{}
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		live[string(claim.UID)] = true
		w.checkClaim(claim)
	}
	retained := w.retained()
	names := w.claimNames()
	for uid := range w.Storage {
		if !live[uid] && !retained[uid] && !w.isSaidToBeLeft(uid, names[uid]) {
			w.T.Errorf("the volume of %s, of the claim %s, is left, and nothing stands for it", uid, names[uid])
		}
	}
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		if slices.Contains(job.Finalizers, jobs.FinalizerRecord) && !w.isInDoubt(job.Name) {
			w.T.Errorf("the record %s is held, and no event says why", job.Name)
		}
	}
	for _, pod := range fakecluster.List[*corev1.Pod](w) {
		if slices.Contains(pod.Finalizers, jobs.FinalizerRecord) {
			w.T.Errorf("the pod %s is held", pod.Name)
		}
	}
	for _, pv := range fakecluster.List[*corev1.PersistentVolume](w) {
		if uid := pv.Annotations[contract.AnnClaimUID]; pv.DeletionTimestamp != nil && !live[uid] {
			w.T.Errorf("the PV %s is terminating for ever", pv.Name)
		}
	}
}

func (w *world) checkClaim(claim *corev1.PersistentVolumeClaim) {
	switch {
	case claim.DeletionTimestamp != nil:
		w.T.Errorf("the claim %s is terminating for ever", claim.Name)
	case claim.Spec.VolumeName == "":
		w.T.Errorf("the claim %s is not bound", claim.Name)
	case !w.Storage[string(claim.UID)]:
		w.T.Errorf("the claim %s is bound and has no volume", claim.Name)
	}
}

// retained returns the UIDs of the claims whose volumes an administrator has: the policy of the PV was Retain in the end, or once while the PV was
// terminating, or the PV was deleted before a dispatcher had put its finalizer on it. No finalizer can be put on a terminating PV.
func (w *world) retained() map[string]bool {
	out, unprotected, freed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, change := range w.Server.History() {
		for _, obj := range []fakecluster.Object{change.Old, change.Now} {
			pv, isPV := obj.(*corev1.PersistentVolume)
			if !isPV {
				continue
			}
			uid := pv.Annotations[contract.AnnClaimUID]
			out[uid] = pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
			if pv.DeletionTimestamp == nil {
				unprotected[uid] = !slices.Contains(pv.Finalizers, contract.FinalizerStorage)
			} else {
				freed[uid] = freed[uid] || out[uid]
			}
		}
	}
	for uid := range out {
		out[uid] = out[uid] || unprotected[uid] || freed[uid]
	}
	return out
}

// claimNames returns the names of all claims that there ever were, by UID.
func (w *world) claimNames() map[string]string {
	out := map[string]string{}
	for _, change := range w.Server.History() {
		if claim, isClaim := change.Now.(*corev1.PersistentVolumeClaim); isClaim {
			out[string(claim.UID)] = claim.Name
		}
	}
	return out
}

// isSaidToBeLeft reports whether an event says that the volume of a claim stays in the storage, or that an administrator has to decide about it.
func (w *world) isSaidToBeLeft(uid, claim string) bool {
	return w.isInDoubt(uid) || slices.ContainsFunc(w.Events.About("", "LeftBehind"), func(e fakecluster.Event) bool {
		return strings.Contains(e.About, uid) || strings.Contains(e.Note+" ", "/"+claim+" ")
	})
}

// isInDoubt reports whether an event about an object whose name holds a text says that an administrator has to decide about a volume. It is emitted by each
// leader, and not again while nothing changes.
func (w *world) isInDoubt(text string) bool {
	return slices.ContainsFunc(w.Events.About("", "VolumeInDoubt"), func(e fakecluster.Event) bool { return strings.Contains(e.About, text) })
}
