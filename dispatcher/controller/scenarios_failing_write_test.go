package controller_test

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A webhook that does not answer fails a write with an internal error, as it does for the time in
// which its pods are moved. Only what lasts is reported.
func TestAWriteWhoseWebhookDoesNotAnswerIsReported(t *testing.T) {
	for name, asks := range map[string]func(verb string, obj fakecluster.Object) bool{
		"the creation of a Job": func(verb string, obj fakecluster.Object) bool {
			_, is := obj.(*batchv1.Job)
			return is && verb == "create"
		},
		"the confirmation of a pod": func(_ string, obj fakecluster.Object) bool { _, is := obj.(*corev1.Pod); return is },
		"the record of an outcome":  hasOutcome,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Server.Refuse(func(by, verb string, obj fakecluster.Object) error {
					if by == "dispatcher" && asks(verb, obj) {
						return apierrors.NewInternalError(errors.New(`failed calling webhook "costs.example.com"`))
					}
					return nil
				})
				w.Start()
				w.CreateClaim("data")
				w.Advance(5 * time.Second)
				w.MustEmit("PersistentVolumeClaim/data", "WriteFailed", 0)
				w.Advance(time.Minute)
				w.mustTell("PersistentVolumeClaim/data", "WriteFailed", "failed calling webhook", "Remedy")
				w.Server.Refuse(nil)
				w.Until("the claim is bound", 2*time.Minute, w.IsBound("data"))
			})
		})
	}
}

// The delete of a volume is held up by a policy. Who looks at its PV finds out why.
func TestAReleasedPVSaysWhichWriteIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.refuseWrites(func(verb string, obj fakecluster.Object) bool {
			job, isJob := obj.(*batchv1.Job)
			return isJob && verb == "patch" && job.Labels[jobs.LabelVerb] == string(contract.Delete)
		})
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Minute)
		w.mustTell("PersistentVolume/pvc-"+string(claim.UID), "WriteRefused", "policy says no", "Remedy")
		w.Server.Refuse(nil)
		w.Until("nothing is left", 2*time.Hour, w.Empty)
	})
}
