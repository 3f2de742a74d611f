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
		pod := w.runningPod(worksLong)
		w.lose()
		fakecluster.Vanish(w, pod)
		w.Advance(2 * time.Minute)
		w.mustNotOverlap(pod, contract.Provision)
	})
}

func TestReplacedPodOfAJobDoesNotHideWhatTheFirstMade(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Worlds.ReplacesVanishedPods = true
		pod := w.runningPod(worksBeforePV)
		w.Until("the volume is made", time.Minute, func() bool { return len(w.Storage) == 1 })
		// Its kubelet ends the pod at its deadline. What a frozen one does:
		// docs/reliability-reference.md#what-is-not-promised.
		w.CutOff["node-1"] = true
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Second)
		fakecluster.Vanish(w, pod)
		w.Advance(3 * time.Hour)
		if len(w.Storage) > 0 {
			w.T.Errorf("the storage has %v, delete runs: %d, events LeftBehind: %d", w.Storage, len(w.RunsOf(contract.Delete)), len(w.Events.About("", "LeftBehind")))
		}
	})
}

// An expand is on record as soon as its container is done. If its pod is then removed, finalizers and
// all, the Job's next pod holds up nothing.
func TestReplacedPodOfARunOnRecordHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Worlds.ReplacesVanishedPods = true
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("it is bound", time.Minute, w.IsBound("data"))
		w.linger(fakecluster.Works)
		w.requestSize("2Gi")
		w.Until("the claim has its size", 10*time.Second, w.hasSize("2Gi"))
		fakecluster.Vanish(w, w.RunningPods()[0])
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its volume is deleted", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
		if again := len(w.RunsOf(contract.Expand)); again != 1 {
			w.T.Errorf("the expand ran %d times", again)
		}
		w.Until("nothing is kept", 3*time.Minute, func() bool { return len(w.keptPods()) == 0 && len(w.HeldRecords()) == 0 })
	})
}
