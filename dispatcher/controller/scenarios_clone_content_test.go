package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestSourceOfACloneStaysUntilTheCloneIsMade(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.startWithNodes()
		a := w.CreateClaim("a")
		w.Until("a is bound", time.Minute, w.IsBound("a"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		b := w.CreateClaim("b", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "a"}
		})
		w.Until("the clone is at work", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		cloning := w.RunningPods()[0]
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Until("a second pod is at work, or the clone is done", 10*time.Minute, func() bool { return len(w.RunningPods()) == 2 || w.IsBound("b")() })
		if len(w.RunningPods()) == 2 {
			w.T.Errorf("the source %s is being deleted by a run while %s copies it for %s", a.UID, cloning.Name, b.UID)
		}
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
