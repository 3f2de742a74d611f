package skew_test

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// restWithin is how long a cluster may take to come to rest, and to be empty.
const restWithin = 12 * time.Hour

// isAtRest reports whether each claim has its volume, or an event of this dispatcher says why not,
// and nothing else is left to do.
func (w *world) isAtRest() bool {
	return !fakecluster.Any(w, func(claim *corev1.PersistentVolumeClaim) bool { return !w.isServed(claim) }) &&
		!fakecluster.Any(w, func(pv *corev1.PersistentVolume) bool {
			return pv.Status.Phase != corev1.VolumeBound && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		}) &&
		!fakecluster.Any(w, func(job *batchv1.Job) bool {
			return fakecluster.FinishedCondition(job) == nil || w.isHeldForNothing(job)
		})
}

// isServed reports whether a claim has its volume, or an event says why not.
func (w *world) isServed(claim *corev1.PersistentVolumeClaim) bool {
	switch {
	case claim.DeletionTimestamp != nil:
		return false
	case w.says(claim.Name):
		return true
	default:
		return claim.Status.Phase == corev1.ClaimBound && w.hasItsSize(claim)
	}
}

// says reports whether an event of this dispatcher says why a claim is not served.
func (w *world) says(claim string) bool {
	return w.story.says != "" && len(w.Events.About("PersistentVolumeClaim/"+claim, w.story.says)) > 0
}

func (w *world) hasItsSize(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Capacity.Storage().Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0 && len(claim.Status.AllocatedResourceStatuses) == 0
}

// isHeldForNothing reports whether a Job or its pod has a finalizer of the dispatcher although no
// claim waits of which an event says so.
func (w *world) isHeldForNothing(job *batchv1.Job) bool {
	waits := fakecluster.Any(w, func(claim *corev1.PersistentVolumeClaim) bool {
		return slices.Contains(jobs.UIDs(job), string(claim.UID)) && w.says(claim.Name)
	})
	return !waits && isHeld(job.Finalizers)
}

func isHeld(finalizers []string) bool {
	return slices.ContainsFunc(finalizers, func(f string) bool { return strings.HasPrefix(f, contract.Domain) })
}

// checkRest checks a cluster that is at rest: each volume has its PV and each PV its volume, no run
// was repeated, and nothing changes any more.
func (w *world) checkRest() {
	w.T.Helper()
	for _, pv := range fakecluster.List[*corev1.PersistentVolume](w) {
		if uid := pv.Annotations[contract.AnnClaimUID]; !w.Storage[uid] {
			w.T.Errorf("the volume of %s is lost", pv.Name)
		}
	}
	for uid := range w.Storage {
		if len(w.recordsOf(types.UID(uid))) == 0 && fakecluster.Get[*corev1.PersistentVolume](w, "", contract.PVName(uid)) == nil {
			w.T.Errorf("nothing leads to the volume of the claim %s", uid)
		}
	}
	w.checkRepeats()
	w.Advance(10 * time.Minute)
	if !w.isAtRest() {
		w.T.Errorf("the cluster was at rest, and is not any more")
	}
}

// checkRepeats checks that no volume was made or deleted again after that had been done.
func (w *world) checkRepeats() {
	w.T.Helper()
	done := map[string]contract.Verb{}
	for _, r := range w.ran {
		switch {
		case r.Verb == contract.Expand:
		case done[r.UID] == r.Verb && r.Verb == contract.Delete && w.waited: // its Job has expired meanwhile
		case done[r.UID] == r.Verb:
			w.T.Errorf("the pod %s does %s once more for the claim %s", r.Pod, r.Verb, r.UID)
		case r.Code == 0:
			done[r.UID] = r.Verb
		case r.Verb == contract.Provision: // it may have made something, which is to be deleted
			delete(done, r.UID)
		}
	}
}

// endAll lets users delete all claims and administrators what they have kept, and checks that
// nothing is left.
func (w *world) endAll() {
	w.T.Helper()
	for _, pv := range fakecluster.List[*corev1.PersistentVolume](w) {
		fakecluster.Update(w, fakecluster.Admin, pv, deletes)
	}
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		fakecluster.Delete(w, fakecluster.User, claim)
	}
	w.giveUpRivals()
	w.Until("nothing is left", restWithin, w.Empty)
	w.Until("nothing has a finalizer", restWithin, func() bool {
		return !fakecluster.Any(w, func(pod *corev1.Pod) bool { return isHeld(pod.Finalizers) })
	})
}

// giveUpRivals does as the event says about a volume that another PV stands for.
func (w *world) giveUpRivals() {
	pv := fakecluster.Get[*corev1.PersistentVolume](w, "", "mine")
	if pv == nil {
		return
	}
	uid := pv.Annotations[contract.AnnClaimUID]
	w.Until("the claim is deleted", restWithin, func() bool { return w.Claim("data") == nil })
	w.Advance(time.Hour)
	if !w.Storage[uid] {
		w.T.Errorf("the volume of another PersistentVolume was deleted")
	}
	fakecluster.Delete(w, fakecluster.Admin, pv)
	for _, job := range w.recordsOf(types.UID(uid)) {
		fakecluster.Update(w, fakecluster.Admin, job, func(job *batchv1.Job) { fakecluster.Annotate(job, jobs.AnnForget, uid) })
	}
	delete(w.Storage, uid)
}
