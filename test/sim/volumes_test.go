package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

var volumePeople = []act{
	{"an administrator sets a PV to Retain", func(w *world) string { return w.setPolicy(corev1.PersistentVolumeReclaimRetain) }},
	{"an administrator sets a PV to Delete", func(w *world) string { return w.setPolicy(corev1.PersistentVolumeReclaimDelete) }},
	{"an administrator deletes a PV", func(w *world) string {
		return one(w, func(pv *corev1.PersistentVolume) { fakecluster.Delete(w, fakecluster.Admin, pv) })
	}},
	{"an administrator writes another PV over a volume", (*world).copyPV},
}

// freePV lets any claim have a PV whose own no longer exists.
func (w *world) freePV() string {
	pv := w.releasedPV()
	if pv == nil {
		return ""
	}
	fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
	return pv.Name
}

// copies is how the names of PVs begin that an administrator has written over the volumes of
// others.
const copies = "kept-"

// copyPV writes another PV over the volume of a PV, for a claim that does not exist: with all that
// the first one carries, as when a backup is restored, or without.
func (w *world) copyPV() string {
	all := slices.DeleteFunc(fakecluster.List[*corev1.PersistentVolume](w), func(pv *corev1.PersistentVolume) bool { return strings.HasPrefix(pv.Name, copies) })
	if len(all) == 0 {
		return ""
	}
	of := all[w.rand.IntN(len(all))]
	w.claims++
	pv := &corev1.PersistentVolume{Spec: *of.Spec.DeepCopy()}
	pv.Name = fmt.Sprint(copies, w.claims)
	if w.rand.IntN(2) == 0 {
		pv.Annotations, pv.Finalizers = maps.Clone(of.Annotations), slices.Clone(of.Finalizers)
	}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: fakecluster.ClaimNamespace, Name: "archive"}
	fakecluster.Create(w, fakecluster.Admin, pv)
	return pv.Name + " over that of " + of.Name
}

// removeCopies deletes the PVs that were written over others. When they do not exist any more, it
// gives up what is kept because of them.
func (w *world) removeCopies() {
	some := fakecluster.ListOf(w, func(pv *corev1.PersistentVolume) bool { return strings.HasPrefix(pv.Name, copies) })
	for _, pv := range some {
		if pv.DeletionTimestamp == nil {
			w.do("an administrator deletes "+pv.Name, func() { fakecluster.Delete(w, fakecluster.Admin, pv) })
		}
	}
	if len(some) > 0 {
		return
	}
	w.giveUpRivals()
}

// giveUpRivals gives up the records that are held because of rivals that do not exist any more, as
// the event asks.
func (w *world) giveUpRivals() {
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		for _, uid := range jobs.UIDs(job) {
			if r := runs.RecordOf(job, uid); r.Held && w.isDeletedRival(r.Rival) && job.Annotations[jobs.AnnForget] != uid {
				w.forget(job, uid)
			}
		}
	}
}

func (w *world) isDeletedRival(name string) bool {
	return name != "" && fakecluster.Get[*corev1.PersistentVolume](w, "", name) == nil
}

func (w *world) setPolicy(policy corev1.PersistentVolumeReclaimPolicy) string {
	return one(w, func(pv *corev1.PersistentVolume) {
		fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
	})
}
