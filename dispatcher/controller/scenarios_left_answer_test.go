package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// forgetWhatWasMade has a run fail after it has made a volume, and its record given up while no
// delete succeeds.
func (w *world) forgetWhatWasMade(start func()) {
	w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
	w.CreateNode("node-1")
	start()
	claim := w.CreateClaim("data")
	w.Until("a run has failed", 5*time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) >= 1 })
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(78, "claim: no")}
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Advance(time.Minute)
	for _, j := range fakecluster.List[*batchv1.Job](w) {
		if j.Labels[jobs.LabelVerb] == string(contract.Provision) {
			fakecluster.Update(w, fakecluster.Admin, j, func(j *batchv1.Job) { j.Annotations[jobs.AnnForget] = string(claim.UID) })
		}
	}
	w.Advance(2 * time.Hour)
}

// mustSayWhatIsLeft fails the test if a volume is in the storage that no event names.
func (w *world) mustSayWhatIsLeft() {
	w.T.Helper()
	if len(w.Storage) > 0 && len(w.Events.About("", "LeftBehind")) == 0 {
		w.T.Errorf("the storage has %v, and no event says so", w.Storage)
	}
}

func TestWhatIsLeftIsReportedAlsoWhenTheAnswerIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		lost := 0
		w.Server.LoseAnswers(func(verb string, obj fakecluster.Object) bool {
			job, is := obj.(*batchv1.Job)
			loses := is && verb == "patch" && job.Annotations[jobs.AnnForget] != "" && jobs.HeadOf(job).Held == 0
			if loses {
				lost++
			}
			return loses
		})
		w.forgetWhatWasMade(func() { w.Start() })
		if lost == 0 {
			w.T.Error("no answer was lost")
		}
		w.mustSayWhatIsLeft()
	})
}

// The events that a leader has emitted when it is killed are lost.
func TestWhatIsLeftIsReportedWhenTheLeaderIsKilledAfterAnyWrite(t *testing.T) {
	for n := range int64(30) {
		inWorld(t, func(w *world) {
			w.Worlds.LosesEvents = true
			w.forgetWhatWasMade(func() { w.StartMortal(n + 1) })
			w.mustSayWhatIsLeft()
		})
	}
}
