package sim_test

import (
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// endAll lets people delete all claims and volumes, and checks that every finalizer goes. What is
// stuck has to say so by an event of the last minutes, and the administrator does what the event
// says.
func (w *world) endAll() {
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		w.do("a user deletes "+claim.Name, func() { fakecluster.Delete(w, fakecluster.User, claim) })
	}
	w.comeToRest()
	w.checkRest()
	for _, pv := range fakecluster.List[*corev1.PersistentVolume](w) {
		w.do("an administrator retains and deletes "+pv.Name, func() {
			fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			fakecluster.Delete(w, fakecluster.Admin, pv)
		})
	}
	w.comeToRest()
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		w.endRecord(job)
	}
	w.comeToRest()
	w.checkNoFinalizer()
}

// forgets finds the annotation that an event names to give up a record.
var forgets = regexp.MustCompile(regexp.QuoteMeta(jobs.AnnForget) + "=([0-9a-f-]+)")

// deletes finds the pod that an event names to be deleted.
var deletes = regexp.MustCompile("kubectl -n ([a-z0-9-]+) delete pod ([a-z0-9.-]+)$")

// deletesIfLeft finds the pod that an event names to be deleted if it waits for its gate and its
// Job no longer exists.
var deletesIfLeft = regexp.MustCompile("the pod ([a-z0-9.-]+) of the same claim may still run. .* Remedy: only if that pod has a scheduling gate and its Job no longer exists: delete that pod$")

// deleteLeftPods deletes the pods that fresh events name since their Jobs were deleted without
// them.
func (w *world) deleteLeftPods() {
	for _, e := range w.Events.About("", "RunNotConfirmed") {
		if !w.said().isFresh(e) {
			continue
		}
		for _, pod := range fakecluster.ListOf(w, func(pod *corev1.Pod) bool { return isToDelete(e.Note, pod) }) {
			w.do("an administrator deletes the pod "+pod.Name+", which its Job has left", func() { fakecluster.Delete(w, fakecluster.Admin, pod) })
		}
	}
}

// isToDelete reports whether a note asks to delete the pod.
func isToDelete(note string, pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	if found := deletesIfLeft.FindStringSubmatch(note); found != nil {
		return found[1] == pod.Name && runs.IsLeftGated(pod)
	}
	found := deletes.FindStringSubmatch(note)
	return found != nil && found[1] == pod.Namespace && found[2] == pod.Name
}

// doAsEventsSay does as events of the last minutes say: an administrator deletes pods that nothing
// starts, and, where a revision does not exist any more, gives up records, and retains the volumes
// of PVs that are being deleted.
func (w *world) doAsEventsSay() {
	w.deleteLeftPods()
	said := map[string]bool{}
	for _, e := range w.Events.About("", "RevisionMissing") {
		if found := forgets.FindStringSubmatch(e.Note); found != nil && time.Since(e.At) <= stale {
			said[found[1]] = true
		}
	}
	for _, pv := range fakecluster.ListOf(w, w.isToRetain) {
		w.do("an administrator retains "+pv.Name, func() {
			fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
		})
	}
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		for _, uid := range jobs.UIDs(job) {
			if said[uid] && job.Annotations[jobs.AnnForget] != uid && runs.RecordOf(job, uid).Held {
				w.forget(job, uid)
			}
		}
	}
}

// isToRetain reports whether a fresh event names Retain as the way out of a PV that is being
// deleted. It is about the PV, or about the claim that was never bound to it.
func (w *world) isToRetain(pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp == nil || pv.Status.Phase == corev1.VolumeBound {
		return false
	}
	about := w.Events.About("PersistentVolume/"+pv.Name, "RevisionMissing")
	if ref := pv.Spec.ClaimRef; ref != nil {
		about = append(about, w.Events.About("PersistentVolumeClaim/"+ref.Name, "RevisionMissing")...)
	}
	return slices.ContainsFunc(about, w.said().isFresh)
}

func (w *world) forget(job *batchv1.Job, uid string) {
	w.do("an administrator gives up a record of "+job.Name, func() {
		fakecluster.Update(w, fakecluster.Admin, job, func(job *batchv1.Job) { fakecluster.Annotate(job, jobs.AnnForget, uid) })
	})
}

// endRecord does with a record that is held what its event says.
func (w *world) endRecord(job *batchv1.Job) {
	if !slices.Contains(job.Finalizers, jobs.FinalizerRecord) {
		return
	}
	if uid := w.said().toForget(job); uid != "" {
		w.forget(job, uid)
		return
	}
	w.T.Errorf("the record of %s is held, and no event of the last %s says what to do", job.Name, stale)
}

// checkNoFinalizer checks that nothing has a finalizer of the dispatcher any more.
func (w *world) checkNoFinalizer() {
	reportHeld[*batchv1.Job](w)
	reportHeld[*corev1.Pod](w)
	reportHeld[*corev1.PersistentVolume](w)
}

func reportHeld[O fakecluster.Object](w *world) {
	for _, obj := range fakecluster.List[O](w) {
		if slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, contract.Domain) }) {
			w.T.Errorf("%T %s keeps its finalizers %v for ever", obj, obj.GetName(), obj.GetFinalizers())
		}
	}
}
