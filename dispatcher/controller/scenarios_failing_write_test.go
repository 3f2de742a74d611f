package controller_test

import (
	"errors"
	"slices"
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

// The volume is kept at once, and its delete, which has no pod yet, shows nothing of that.
func TestACancelThatFailedIsTriedAgain(t *testing.T) {
	for name, fails := range map[string]func() error{
		"by an error": func() error { return apierrors.NewInternalError(errors.New("etcdserver: leader changed")) },
		"by a panic":  func() error { panic("a bug") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.Panics = true
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				w.NoPodFor["data"] = true
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("the delete's Job is created", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
				w.Advance(5 * time.Second)
				failed := false
				w.Server.Refuse(func(by, verb string, obj fakecluster.Object) error {
					if _, isJob := obj.(*batchv1.Job); by != "dispatcher" || verb != "delete" || !isJob || failed {
						return nil
					}
					failed = true
					return fails()
				})
				w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
				w.Until("the Job is cancelled", 5*time.Second, func() bool {
					return failed && !slices.ContainsFunc(fakecluster.List[*batchv1.Job](w), func(job *batchv1.Job) bool {
						return job.Labels[jobs.LabelVerb] == string(contract.Delete) && job.DeletionTimestamp == nil
					})
				})
			})
		})
	}
}
