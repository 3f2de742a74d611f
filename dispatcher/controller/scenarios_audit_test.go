package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// config returns the config gold and its ConfigMap.
func (w *world) config() (config.Config, *corev1.ConfigMap) {
	w.T.Helper()
	cm := fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold")
	cfg, faults := config.Parse(config.SourceOf(cm, fakecluster.Get[*storagev1.StorageClass](w, "", "gold")), contract.ProvisionerName)
	if len(faults) > 0 {
		w.T.Fatal(faults.ToAggregate())
	}
	return cfg, cm
}

// list makes the Job with which an audit asks what the storage of the class gold has.
func (w *world) list(number int) *batchv1.Job {
	w.T.Helper()
	cfg, cm := w.config()
	job, err := jobs.List(cfg, string(cm.UID), number, jobs.Cluster{UID: "c-1"})
	if err != nil {
		w.T.Fatal(err)
	}
	return fakecluster.Create(w, fakecluster.Admin, job)
}

func (w *world) hasEnded(job *batchv1.Job) func() bool {
	return func() bool {
		now := fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name)
		return now != nil && fakecluster.FinishedCondition(now) != nil
	}
}

func (w *world) wasDeleted(job *batchv1.Job) func() bool {
	return func() bool { return fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name) == nil }
}

// All slots of the class are in use by a run that takes long, and an audit is to find out why.
func TestListOfAnAuditIsConfirmedAtOnceAndIsNoRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(nil, "verbs", "provision,delete,list", "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 2 * time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		first, second := w.list(1), w.list(2)
		w.Until("the list runs", 2*time.Second, func() bool { return len(w.RunningPods()) == 2 })
		w.Advance(100 * time.Second)
		if len(w.RunningPods()) != 2 {
			w.T.Error("two lists of one config run at a time")
		}
		w.MustEmitSome("Job/"+second.Name, "RunNotConfirmed", "lists the same storage")
		w.Until("the first list has ended", 2*time.Minute, w.hasEnded(first))
		w.Until("the second list has ended", 10*time.Minute, w.hasEnded(second))
		w.MustRun("list", "provision", "list")
		if held := w.HeldRecords(); len(held) > 0 {
			w.T.Errorf("%v are held", held)
		}
		w.Until("the lists have expired", time.Hour, func() bool { return w.wasDeleted(first)() && w.wasDeleted(second)() })
		w.CreateClaim("more")
		w.Until("a slot is free again", time.Hour, w.IsBound("more"))
		w.MustEmit("", "AuditRefused", 0)
	})
}

func TestListOfAnAuditIsConfirmedByTheNextLeader(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "verbs", "provision,delete,list")
		job := w.list(1)
		w.Advance(time.Minute)
		w.Start()
		w.Until("the list has ended", time.Minute, w.hasEnded(job))
	})
}

func TestListOfAnAuditIsRefusedUnderAConfigThatIsNoMore(t *testing.T) {
	for name, test := range map[string]struct {
		verbs  string
		change func(*world)
		why    string
	}{
		"gone": {"provision,delete,list", func(w *world) {
			_, cm := w.config()
			fakecluster.Delete(w, fakecluster.Admin, cm)
		}, "the class gold has no provisioner config"},
		"another of its name": {"provision,delete,list", func(w *world) {
			_, cm := w.config()
			fakecluster.Delete(w, fakecluster.Admin, cm)
			w.CreateConfig("gold", "gold", "verbs", "provision,delete,list")
		}, "is another one by now"},
		"changed": {"provision,delete,list", func(w *world) { w.UpdateConfig("image", newer) }, "the class has"},
		"without a class": {"provision,delete,list", func(w *world) {
			fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		}, "the class gold does not exist"},
		"without the verb": {"provision,delete", func(*world) {}, "does not serve the verb list"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "verbs", test.verbs)
				job := w.list(1)
				test.change(w)
				w.Start()
				w.Until("the list is cancelled", time.Minute, w.wasDeleted(job))
				w.MustEmit("Job/"+job.Name, "AuditRefused", 1, test.why)
				w.MustRun()
			})
		})
	}
}

// leftUID is the UID of a claim that does not exist any more.
const leftUID = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"

// leftVolume is how the storage names its volume.
const leftVolume = "5d1f0b6e-0b1c-4c8e-9a57-2d3e4f506071"

// fix makes the Job with which an audit deletes the volume of a claim.
func (w *world) fix(uid string) *batchv1.Job {
	w.T.Helper()
	cfg, _ := w.config()
	listed := contract.Listed{UID: uid, Volume: leftVolume, Size: 1 << 30, Namespace: fakecluster.ClaimNamespace, Name: "data", ClusterUID: "c-1"}
	job, err := jobs.Fix(cfg, listed, 1, jobs.Cluster{UID: "c-1"}, contract.ProvisionerName)
	if err != nil {
		w.T.Fatal(err)
	}
	return fakecluster.Create(w, fakecluster.Admin, job)
}

func TestVolumeThatStandsForNothingIsDeletedByAnAudit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Storage[leftUID] = true
		w.Start()
		job := w.fix(leftUID)
		w.Until("its record was released", time.Minute, func() bool { return w.hasEnded(job)() && len(w.HeldRecords()) == 0 })
		w.MustRun("delete")
		if w.Storage[leftUID] || !w.Runs[0].Request.Undo || w.Runs[0].Request.ClusterUID != "c-1" {
			w.T.Errorf("the volume is there: %t; the request was %+v", w.Storage[leftUID], w.Runs[0].Request)
		}
		w.Until("the Job expires", time.Hour, w.wasDeleted(job))
		w.MustEmit("", "AuditRefused", 0)
	})
}

func TestDeleteOfAnAuditThatFailsIsOnRecordAndNotRepeated(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Fails(75, "the storage is busy"))
		w.Storage[leftUID] = true
		w.Start()
		job := w.fix(leftUID)
		w.Until("its record was released", time.Minute, func() bool { return w.hasEnded(job)() && len(w.HeldRecords()) == 0 })
		w.Advance(30 * time.Minute)
		w.MustRun("delete")
		w.MustEmit("Job/"+job.Name, "UndoFailed", 1, "exit code 75")
	})
}

// restored is a PV as a backup restores it: without the claim's UID in its claimRef.
func restored(name string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: fakecluster.ClaimNamespace, Name: "data"}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	change(pv)
	return pv
}

// The audit has looked, and before the dispatcher confirms the Job something stands for the volume.
func TestDeleteOfAnAuditIsRefusedWhenTheVolumeStandsForSomething(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		why    string
	}{
		"its PV was restored": {func(w *world) {
			fakecluster.Create(w, fakecluster.Admin, restored(contract.PVName(leftUID), func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = leftUID }))
		}, "the PersistentVolume of the volume exists"},
		"a PV of another name carries the UID": {func(w *world) {
			fakecluster.Create(w, fakecluster.Admin, restored("mine", func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = leftUID }))
		}, "the PersistentVolume mine may stand for the volume"},
		"a PV by hand names the claim by its UID": {func(w *world) {
			fakecluster.Create(w, fakecluster.Admin, restored("mine", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.Name = leftUID, "other" }))
		}, "the PersistentVolume mine may stand for the volume"},
		"a PV by hand is reserved for the claim's name": {func(w *world) {
			fakecluster.Create(w, fakecluster.Admin, restored("mine", func(*corev1.PersistentVolume) {}))
		}, "the PersistentVolume mine may stand for the volume"},
		"a PV by hand has the volume": {func(w *world) {
			fakecluster.Create(w, fakecluster.Admin, restored("mine", func(pv *corev1.PersistentVolume) {
				pv.Spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{IQN: "iqn.2010-10.org.openstack:volume-" + leftVolume}
				pv.Spec.ClaimRef = nil
			}))
		}, "the PersistentVolume mine may stand for the volume"},
		"its class retains volumes now": {func(w *world) {
			fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
			w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		}, "it was made under the config revision"},
		"its config has changed": {func(w *world) { w.UpdateConfig("image", newer) }, "it was made under the config revision"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Storage[leftUID] = true
				job := w.fix(leftUID)
				test.change(w)
				w.Start()
				w.Until("the Job is cancelled", time.Minute, w.wasDeleted(job))
				w.MustEmit("Job/"+job.Name, "AuditRefused", 1, test.why)
				if w.MustRun(); !w.Storage[leftUID] {
					w.T.Error("the volume was deleted")
				}
			})
		})
	}
}

// The caches of the dispatcher do not show yet that the PV was restored, or that an administrator has written one of another name.
func TestDeleteOfAnAuditIsConfirmedOnLiveFacts(t *testing.T) {
	for name, test := range map[string]struct {
		pv  *corev1.PersistentVolume
		why string
	}{
		"its own": {restored(contract.PVName(leftUID), func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = leftUID }), "the PersistentVolume of the volume exists"},
		"of another name": {restored("mine", func(pv *corev1.PersistentVolume) {
			pv.Spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{IQN: "iqn.2010-10.org.openstack:volume-" + leftVolume}
			pv.Spec.ClaimRef = nil
		}), "the PersistentVolume mine may stand for the volume"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Storage[leftUID] = true
				w.Start()
				w.Advance(time.Second)
				w.Server.DelayWatches("persistentvolumes", true)
				fakecluster.Create(w, fakecluster.Admin, test.pv)
				job := w.fix(leftUID)
				w.Until("the Job is cancelled", time.Minute, w.wasDeleted(job))
				w.MustEmit("Job/"+job.Name, "AuditRefused", 1, test.why)
				if w.MustRun(); !w.Storage[leftUID] {
					w.T.Error("the volume was deleted")
				}
			})
		})
	}
}

// What the storage says of the claim's name is not believed: the claim is known by its UID.
func TestDeleteOfAnAuditIsRefusedForAClaimOfAnotherName(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		w.Start()
		claim := w.CreateClaim("another")
		w.Advance(time.Second)
		for _, held := range fakecluster.List[*batchv1.Job](w) { // the audit has found no Job of it
			fakecluster.Delete(w, fakecluster.Admin, held)
			fakecluster.RemoveFinalizer(w, fakecluster.Admin, held, jobs.FinalizerRecord)
		}
		job := w.fix(string(claim.UID))
		w.Until("the Job is cancelled", time.Minute, w.wasDeleted(job))
		w.MustEmit("Job/"+job.Name, "AuditRefused", 1, "the claim of the volume exists")
	})
}
