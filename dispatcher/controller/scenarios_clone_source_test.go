package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// mustKeepTheSource fails the test if a delete is at work before the clone b has been made.
func (w *world) mustKeepTheSource() {
	w.T.Helper()
	w.Until("a second pod is at work, or the clone is done", 10*time.Minute, func() bool { return len(w.RunningPods()) == 2 || w.IsBound("b")() })
	if len(w.RunningPods()) == 2 {
		w.T.Error("the source is being deleted while a run clones it")
	}
}

// The API deletes a Job without its pods unless it is asked for another way, and an administrator
// removes its finalizers: the pod goes on.
func TestADeleteWaitsForACloneWhoseJobWasRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		cloning := w.cloneAtWork()
		source, job := w.Claim("a").UID, cloning.Labels[batchv1.JobNameLabel]
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		w.Advance(20 * time.Second)
		if err := w.Server.Client(fakecluster.Admin).BatchV1().Jobs(cloning.Namespace).Delete(t.Context(), job, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Advance(2 * time.Second)
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*batchv1.Job](w, cloning.Namespace, job), func(j *batchv1.Job) { j.Finalizers = nil })
		w.mustKeepTheSource()
		w.MustContain("PersistentVolume/"+contract.PVName(string(source)), reason.VolumeInUse, []string{cloning.Name})
		w.Until("the source is deleted", 10*time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
	})
}

// The Jobs say what is cloned before a delete is launched. Their watch may be behind that of the pods.
func TestADeleteWaitsForACloneWhoseJobIsNotSeen(t *testing.T) {
	for name, leaders := range map[string]int{"by the one leader": 1, "by one of two": 2} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
				w.CreateNode("node-1")
				first := w.Start()
				w.CreateClaim("a")
				w.Until("a is bound", time.Minute, w.IsBound("a"))
				w.Advance(10 * time.Second)
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
				if leaders == 2 {
					first.DelayWatches("jobs", true)
					w.Start()
				} else {
					w.Server.DelayWatches("jobs", true)
				}
				w.CreateClaim("b", copyOf("a"))
				w.Until("the clone is at work", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
				fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
				w.mustKeepTheSource()
			})
		})
	}
}

// The dispatcher of the other provisioner deletes such a source, and sees no Job of this one.
func TestNoVolumeOfAnotherProvisionerIsCloned(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) { c.Provisioner = "other.example.com" })
		w.CreateConfig("silver", "silver", "data-sources", "PersistentVolumeClaim")
		w.startWithNodes()
		w.options.Provisioner = "other.example.com"
		w.Start()
		w.CreateClaim("a")
		w.Until("a is bound", time.Minute, w.IsBound("a"))
		w.CreateClaim("b", copyOf("a"), func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("silver") })
		w.Advance(time.Minute)
		w.MustRun("provision")
		w.mustTell("PersistentVolumeClaim/b", reason.SourceRefused, contract.ProvisionerName, "Remedy")
	})
}

// A user who is asked for the source creates it, and is refused then.
func TestAClassThatClonesNothingAsksForNoSource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("data", copyOf("nothing"))
		w.Advance(time.Minute)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "DataSourceNotSupported", "data-sources")
		if all := w.Events.About(onData, "SourceNotFound"); len(all) > 0 {
			w.T.Errorf("it asks for a source: %v", all)
		}
	})
}
