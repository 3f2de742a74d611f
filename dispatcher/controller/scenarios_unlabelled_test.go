package controller_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// Anybody who may write Jobs may take a label off one. The dispatcher enqueued the claim of such a
// Job again and again, without a pause: this test hung.
func TestAJobThatHasLostTheLabelOfItsClaimIsRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Update(w, fakecluster.Admin, w.CreatedJobs("")[0].Now.(*batchv1.Job), func(job *batchv1.Job) { delete(job.Labels, contract.LabelClaimUID) })
		w.Until("the claim is bound", 2*time.Minute, w.IsBound("data"))
		w.Until("nothing is held any more", time.Minute, func() bool { return len(w.HeldRecords()) == 0 && len(w.keptPods()) == 0 })
	})
}

// A webhook takes the annotations off a Job, and its dispatcher dies before it has deleted the Job.
// No cache found such a Job for its claim, which waited for ever without an event. Now the claim
// says what to do, again and again, and that works.
func TestAJobWithoutAnnotationsOfADispatcherThatDiedIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.stripWrites(func(verb string, obj fakecluster.Object) bool {
			_, isJob := obj.(*batchv1.Job)
			if isJob && verb == "create" {
				maps.DeleteFunc(obj.GetAnnotations(), func(key, _ string) bool { return strings.HasPrefix(key, contract.Domain) })
			}
			return isJob
		})
		w.Downtime = time.Minute
		claim := w.CreateClaim("data")
		w.StartMortal(2) // the config's revision, and the Job
		w.Until("it has died", time.Minute, func() bool { return w.Deaths > 0 })
		w.Server.Refuse(nil)
		w.Advance(2 * time.Hour)
		if n := len(w.Events.About(onData, "RevisionMissing")); n < 10 || n > 20 {
			w.T.Errorf("the event was emitted %d times in two hours, want one every ten minutes or so", n)
		}
		forget := jobs.AnnForget + "=" + string(claim.UID)
		w.MustEmitSome(onData, "RevisionMissing", forget)
		fakecluster.Update(w, fakecluster.Admin, w.CreatedJobs("")[0].Now.(*batchv1.Job), func(job *batchv1.Job) {
			fakecluster.Annotate(job, jobs.AnnForget, string(claim.UID))
		})
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
		w.MustRun("provision")
	})
}
