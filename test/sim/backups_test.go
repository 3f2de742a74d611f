package sim_test

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// backup is what an administrator has of the cluster at one time.
type backup struct {
	pvs    []*corev1.PersistentVolume
	claims []*corev1.PersistentVolumeClaim
	jobs   []*batchv1.Job
}

var backupPeople = []act{
	{"an administrator makes a backup", func(w *world) string { w.makeBackup(); return "all" }},
	{"an administrator restores a backup", func(w *world) string {
		w.Server.LoseAnswer(nil) // an administrator sees what has failed, and repeats it
		return w.restore()
	}},
}

func (w *world) makeBackup() {
	w.backup = backup{fakecluster.List[*corev1.PersistentVolume](w), fakecluster.List[*corev1.PersistentVolumeClaim](w), fakecluster.List[*batchv1.Job](w)}
}

// restore creates what does not exist any more as Velero does: first the retained PVs that have
// their volumes, for the claims of their names and not as those of a provisioner, then their
// claims, which name them, and the Jobs that had not ended.
func (w *world) restore() string {
	restored := ""
	for _, pv := range w.backup.pvs {
		if w.isRestored(pv) {
			restored += " " + w.restorePV(pv).Name
		}
	}
	for _, claim := range w.backup.claims {
		if w.Claim(claim.Name) == nil && claim.DeletionTimestamp == nil && claim.Spec.VolumeName != "" && w.isVacant(claim.Spec.VolumeName) {
			restored += " " + w.restoreClaim(claim).Name
		}
	}
	for _, job := range w.backup.jobs {
		if w.admission.full != "jobs" && fakecluster.FinishedCondition(job) == nil && job.DeletionTimestamp == nil && fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name) == nil && job.Namespace != further {
			fakecluster.Create(w, fakecluster.Admin, &batchv1.Job{ObjectMeta: restoredMeta(job), Spec: *job.Spec.DeepCopy()})
			restored += " " + job.Name
		}
	}
	return restored
}

// isRestored reports whether a PV of a backup is restored: the policy of one whose volume is not
// copied is Retain, and an administrator sees that its volume is there.
func (w *world) isRestored(pv *corev1.PersistentVolume) bool {
	return pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && pv.DeletionTimestamp == nil && pv.Spec.ClaimRef != nil &&
		fakecluster.Get[*corev1.PersistentVolume](w, "", pv.Name) == nil && w.volumes()[pv.Annotations[contract.AnnClaimUID]] == 1
}

func restoredMeta(of metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: of.GetName(), Namespace: of.GetNamespace(), Labels: of.GetLabels(), Annotations: of.GetAnnotations(), Finalizers: of.GetFinalizers()}
}

func (w *world) restorePV(of *corev1.PersistentVolume) *corev1.PersistentVolume {
	of = of.DeepCopy()
	pv := &corev1.PersistentVolume{ObjectMeta: restoredMeta(of), Spec: of.Spec}
	delete(pv.Annotations, contract.AnnProvisionedBy)
	pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.ResourceVersion = "", ""
	return fakecluster.Create(w, fakecluster.Admin, pv)
}

func (w *world) restoreClaim(of *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	of = of.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: restoredMeta(of), Spec: of.Spec}
	delete(claim.Annotations, "pv.kubernetes.io/bind-completed")
	return fakecluster.Create(w, fakecluster.User, claim)
}

// isVacant reports whether a PV waits for a claim of its name.
func (w *world) isVacant(name string) bool {
	pv := fakecluster.Get[*corev1.PersistentVolume](w, "", name)
	return pv != nil && pv.DeletionTimestamp == nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == ""
}

// handOn names another claim in a released PV, and creates that.
func (w *world) handOn() string {
	pv := w.releasedPV()
	if pv == nil {
		return ""
	}
	w.claims++
	heir := fmt.Sprintf("data-%d", w.claims)
	fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: fakecluster.ClaimNamespace, Name: heir}
	})
	w.CreateClaim(heir, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.StorageClassName, claim.Spec.VolumeName = new(pv.Spec.StorageClassName), pv.Name
		claim.Spec.Resources.Requests = pv.Spec.Capacity.DeepCopy()
	})
	return pv.Name + " to " + heir
}
