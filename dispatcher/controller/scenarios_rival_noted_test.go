package controller_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// rescuedBy writes a PV by hand for the volume of a claim, with the policy Retain.
func (w *world) rescuedBy(name string, claim *corev1.PersistentVolumeClaim, source string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "gold", AccessModes: claim.Spec.AccessModes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: source}},
		},
	}
	for _, f := range change {
		f(pv)
	}
	return fakecluster.Create(w, fakecluster.Admin, pv)
}

// jobOf returns the newest provision Job of a claim.
func (w *world) jobOf(claim *corev1.PersistentVolumeClaim) *batchv1.Job {
	all := fakecluster.List[*batchv1.Job](w)
	var last *batchv1.Job
	for _, job := range all {
		if strings.HasPrefix(job.Name, "provision-"+string(claim.UID)) {
			last = job
		}
	}
	return last
}

// keptByARival returns a deleted claim, whose volume an administrator has kept by a PV by hand,
// which was deleted, too.
func (w *world) keptByARival() *corev1.PersistentVolumeClaim {
	w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
	w.Start()
	claim := w.CreateClaim("data")
	w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
	rival := w.rescuedBy("rescued", claim, "/"+contract.PVName(string(claim.UID)))
	w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	w.Advance(time.Hour)
	fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
	w.Advance(time.Minute)
	fakecluster.Delete(w, fakecluster.Admin, rival)
	w.mustKeepVolume(claim)
	w.MustEmitSome("Job/"+w.jobOf(claim).Name, "VolumeInDoubt", "rescued", "Remedy", jobs.AnnForget)
	return claim
}

// As Kubernetes says of the policy Retain: the PV object is deleted, and its volume stays.
func TestARivalOutlivesItsPV(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := w.keptByARival()
		w.Stop()
		w.Start()
		w.mustKeepVolume(claim)
		fakecluster.Update(w, fakecluster.Admin, w.jobOf(claim), func(job *batchv1.Job) { job.Annotations[jobs.AnnForget] = string(claim.UID) })
		w.Until("the record is released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.mustKeepVolume(claim)
	})
}

// The name of the volume in the storage is the natural name of a PV by hand, too. A PV of another
// provisioner may have it as well.
func TestTheVolumeOfAPVByHandOfTheRightNameIsKept(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"by hand": func(*corev1.PersistentVolume) {},
		"of another provisioner": func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, contract.AnnProvisionedBy, "csi.example.com")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
				pv := w.rescuedBy(contract.PVName(string(claim.UID)), claim, "/used", change)
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.Advance(time.Hour)
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				w.Advance(time.Minute)
				fakecluster.Delete(w, fakecluster.Admin, pv)
				w.mustKeepVolume(claim)
				w.MustEmitSome("Job/"+w.jobOf(claim).Name, "VolumeInDoubt", pv.Name, "Remedy", jobs.AnnForget)
				fakecluster.Update(w, fakecluster.Admin, w.jobOf(claim), func(job *batchv1.Job) { job.Annotations[jobs.AnnForget] = string(claim.UID) })
				w.Until("the record is released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
				w.mustKeepVolume(claim)
			})
		})
	}
}

// The storage is down while the volume of a released PV is to be deleted. An administrator writes
// its PV again under another name, for a new claim, with nothing of it but the volume source. The
// first PV is being deleted already, and goes without its volume.
func TestARivalByItsVolumeSourceStopsAReclaim(t *testing.T) {
	inWorld(t, func(w *world) {
		down := true
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if down && r.Verb == contract.Delete {
				return fakecluster.Exit{Code: 75}
			}
			return fakecluster.Works(r)
		})
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("a delete failed", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
		next := w.CreateClaim("next", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "copy" })
		copied := w.rescuedBy("copy", next, "/"+contract.PVName(string(claim.UID)))
		w.Until("the claim is bound", time.Minute, w.IsBound("next"))
		down = false
		w.mustKeepVolume(claim)
		w.MustEmitSome("PersistentVolume/"+contract.PVName(string(claim.UID)), "LeftBehind", "copy", "volume source")
		fakecluster.Delete(w, fakecluster.User, w.Claim("next"))
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.Admin, copied)
		w.mustKeepVolume(claim)
	})
}

// The PV of the claim is set to Retain, so its object can be deleted like any other that is.
func TestAPVThatARivalHasRetainedCanBeDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		copied := w.rescuedBy("copy", claim, "/"+contract.PVName(string(claim.UID)), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		w.Until("the PV is retained", time.Minute, func() bool {
			return w.PVOf(claim).Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		})
		fakecluster.Delete(w, fakecluster.Admin, copied)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.mustKeepVolume(claim)
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("the PV no longer exists", time.Minute, func() bool { return w.PVOf(claim) == nil })
		w.mustKeepVolume(claim)
	})
}

// A PV by hand is a rival if it is not older than the first run that may have made something, whose
// Job may have expired.
func TestARecordSaysSinceWhenSomethingMayBeInTheStorage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("three runs failed", 10*time.Minute, func() bool { return len(w.Runs) == 3 })
		first := fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, w.CreatedJobs(contract.Provision)[0].Name)
		if since := runs.RecordOf(w.jobOf(claim), string(claim.UID)).Since; !since.Equal(first.CreationTimestamp.Time) {
			w.T.Errorf("since %s, and the first run was created at %s", since, first.CreationTimestamp)
		}
	})
}
