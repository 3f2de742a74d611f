package controller_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestSourceOfACloneStaysUntilTheCloneIsMade(t *testing.T) {
	inWorld(t, func(w *world) {
		cloning := w.cloneAtWork()
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		w.Until("a second pod is at work, or the clone is done", 10*time.Minute, func() bool { return len(w.RunningPods()) == 2 || w.IsBound("b")() })
		if len(w.RunningPods()) == 2 {
			w.T.Errorf("the source is being deleted by a run while %s copies it", cloning.Name)
		}
	})
}

// cloneAtWork returns the pod that clones the volume of the claim a for the claim b.
func (w *world) cloneAtWork() *corev1.Pod {
	w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
	w.startWithNodes()
	w.CreateClaim("a")
	w.Until("a is bound", time.Minute, w.IsBound("a"))
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
	w.CreateClaim("b", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "a"}
	})
	w.Until("the clone is at work", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	return w.RunningPods()[0]
}

// After the way back from a later dispatcher the record of the clone says to this one which volumes
// are cloned, and nothing else: neither whether the copy has ended nor whether it may still run.
func TestSourceOfACloneStaysWhileALaterDispatcherHasItsRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		cloning := w.cloneAtWork()
		w.Stop()
		job := fakecluster.Get[*batchv1.Job](w, cloning.Namespace, cloning.Labels[batchv1.JobNameLabel])
		fakecluster.Update(w, "a later dispatcher", job, func(job *batchv1.Job) {
			job.Annotations[jobs.AnnRecord] = strings.Replace(job.Annotations[jobs.AnnRecord], `{"version":1,"namespaces":[`, `{"version":2,"namespaces":{"app":1},"_":[`, 1)
		})
		source := w.Claim("a").UID
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		w.Start()
		w.Advance(2 * time.Hour)
		if deletes := w.RunsOf(contract.Delete); len(deletes) > 0 {
			w.T.Errorf("the source was deleted, and %s may have copied it", cloning.Name)
		}
		w.MustContain("PersistentVolume/"+contract.PVName(string(source)), reason.RecordTooNew, []string{job.Name})
	})
}

func TestCloneOfAReplacedSourceIsMadeAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.CreateNode("node-1")
		w.Start()
		a := w.CreateClaim("a")
		w.Until("a is bound", time.Minute, w.IsBound("a"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75))}
		b := w.CreateClaim("b", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "a"}
		})
		w.Until("a first attempt", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) >= 2 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		w.Until("a is gone", time.Minute, func() bool { return w.Claim("a") == nil })
		a2 := w.CreateClaim("a")
		w.Until("b is bound", 10*time.Minute, w.IsBound("b"))
		undone := false
		for _, r := range w.Runs {
			if r.Request.UID != string(b.UID) {
				continue
			}
			undone = undone || r.Verb == contract.Delete
		}
		if !undone {
			w.T.Errorf("what was made of the source %s was not undone before a run with the source %s", a.UID, a2.UID)
		}
	})
}

func TestEmptyVolumeOfAnEarlierAttemptIsNoClone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.CreateNode("node-1")
		w.Start()
		w.CreateClaim("a")
		w.Until("a is bound", time.Minute, w.IsBound("a"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75))}
		b := w.CreateClaim("b")
		w.Until("a first attempt", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) >= 2 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		fakecluster.Update(w, fakecluster.User, w.Claim("b"), func(c *corev1.PersistentVolumeClaim) {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[contract.AnnCloneRequest] = "a"
		})
		w.Until("b is bound", 10*time.Minute, w.IsBound("b"))
		undone := false
		for _, r := range w.Runs {
			if r.Request.UID != string(b.UID) {
				continue
			}
			undone = undone || r.Verb == contract.Delete
		}
		if !undone {
			w.T.Errorf("the empty volume of an attempt without a source was not undone before a run that is to make a clone")
		}
	})
}
