package controller_test

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestReplacedPodOfAJobDoesNotRunBesideTheFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Worlds.ReplacesVanishedPods = true
		w.SetUpGold(fakecluster.Works, "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.startWithNodes()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.lose()
		w.vanish(pod)
		w.Advance(2 * time.Minute)
		w.mustNotOverlap(pod, contract.Provision)
	})
}

func TestReplacedPodOfAJobDoesNotHideWhatTheFirstMade(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Worlds.ReplacesVanishedPods = true
		w.SetUpGold(fakecluster.Works, "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.startWithNodes()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.RunsOfPod(pod)[0].CreateVolume()
		w.lose()
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Second)
		w.vanish(pod)
		w.Advance(3 * time.Hour)
		if len(w.Storage) > 0 {
			w.T.Errorf("the storage has %v, delete runs: %d, events LeftBehind: %d", w.Storage, len(w.RunsOf(contract.Delete)), len(w.Events.About("", "LeftBehind")))
		}
	})
}
