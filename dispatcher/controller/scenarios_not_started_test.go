package controller_test

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// cannotStart are the images whose container is never started, and what events say of each.
var cannotStart = map[string]struct {
	image fakecluster.Image
	says  []string
}{
	"no such program":     {fakecluster.Image{StartFails: "StartError"}, []string{"StartError", "exec: no such file or directory", "correct the script, the key image"}},
	"another runtime":     {fakecluster.Image{StartFails: "ContainerCannotRun"}, []string{"ContainerCannotRun", "correct the script, the key image"}},
	"its node is full":    {fakecluster.Image{Rejected: "OutOfcpu"}, []string{"OutOfcpu", "Pod was rejected: it does not fit", "change resources or nodes"}},
	"its node is another": {fakecluster.Image{Rejected: "NodeAffinity"}, []string{"NodeAffinity", "change resources or nodes"}},
}

// Such a run has made nothing: a corrected config is used at once, and nothing is undone, which the
// same fault would keep from starting, too.
func TestARunThatCouldNotStartIsNotUndone(t *testing.T) {
	for name, tt := range cannotStart {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "max-attempts", "3")
				w.Images[fakecluster.GoldImage] = tt.image
				w.Start()
				w.CreateClaim("data")
				w.Advance(10 * time.Minute)
				if n := len(w.CreatedJobs("")); n < 7 || n > 12 {
					w.T.Errorf("%d Jobs in ten minutes", n)
				}
				w.MustContain(onData, "ProvisioningFailed", append(tt.says, "does not count as an attempt", "attempt 1", "next attempt in"))
				w.MustEmit(onData, "Stalled", 0)
				w.Images["localhost/corrected"] = fakecluster.Image{Does: fakecluster.Works}
				w.UpdateConfig("image", "localhost/corrected")
				w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
				w.MustRun("provision")
				if n := len(w.CreatedJobs(contract.Delete)); n != 0 {
					w.T.Errorf("%d undos", n)
				}
				w.MustShow(map[string]string{"attempts": "1", "result": "succeeded"})
			})
		})
	}
}

// The claim is deleted: nothing has to be undone, and its record is released.
func TestTheRecordOfARunThatCouldNotStartIsReleased(t *testing.T) {
	for name, tt := range cannotStart {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Images[fakecluster.GoldImage] = tt.image
				w.Start()
				claim := w.CreateClaim("data")
				w.Advance(time.Minute)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("nothing is left", time.Minute, w.Empty)
				if n := len(w.CreatedJobs(contract.Delete)); n != 0 {
					w.T.Errorf("%d undos", n)
				}
			})
		})
	}
}

// What an earlier run has made is undone as before.
func TestUndoBeforeAnotherAttemptWhenTheLastCouldNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		w.CreateClaim("data")
		w.Until("the first run has failed", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{StartFails: "StartError"}
		w.Advance(time.Minute)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Images["localhost/corrected"] = fakecluster.Image{Does: fakecluster.Works}
		w.UpdateConfig("image", "localhost/corrected")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustRun("provision", "delete", "provision")
	})
}

// The code of a node that does not know how the container ended is none of the image's: it is not the
// one attempt that max-attempts allows.
func TestARunWhoseEndItsNodeDoesNotKnowIsNotCounted(t *testing.T) {
	for _, end := range []fakecluster.Exit{
		{Code: 255, Reason: "Unknown"},
		{Code: 137, Reason: "ContainerStatusUnknown"},
	} {
		t.Run(end.Reason, func(t *testing.T) {
			inWorld(t, func(w *world) {
				halfway := func(r *fakecluster.Run) fakecluster.Exit { r.CreateVolume(); return end }
				w.SetUpGold(fakecluster.Script(halfway), "max-attempts", "1")
				w.Start()
				w.CreateClaim("data")
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.MustRun("provision", "provision")
				w.MustContain(onData, "ProvisioningFailed", []string{
					"Unknown (" + end.Reason + ", its node does not know how its container ended)",
					"next attempt in 10s",
				})
				w.MustEmit(onData, "Stalled", 0)
				w.MustShow(map[string]string{"attempts": "1", "result": "succeeded"})
			})
		})
	}
}
