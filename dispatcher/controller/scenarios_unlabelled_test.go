package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// Anybody who may write Jobs may take a label off one. The dispatcher enqueued the claim of such a Job again and again, without a pause: this test hung.
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
