package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// adopt lets a pod of others complete the Job of a verb, as the Job controller does with a pod that
// has its label: it adopts that pod, and deletes the Job's own as the one too many
// (activePodsForRemoval in pkg/controller/job/job_controller.go).
func (w *world) adopt(verb contract.Verb) {
	w.T.Helper()
	var job *batchv1.Job
	w.Until("there is a Job", time.Minute, func() bool {
		for _, one := range fakecluster.List[*batchv1.Job](w) {
			if one.Labels[jobs.LabelVerb] == string(verb) && fakecluster.FinishedCondition(one) == nil {
				job = one
			}
		}
		return job != nil
	})
	for _, pod := range fakecluster.List[*corev1.Pod](w) {
		if metav1.IsControlledBy(pod, job) {
			fakecluster.Delete(w, fakecluster.KubeControllerManager, pod)
		}
	}
	fakecluster.Update(w, fakecluster.KubeControllerManager, job, func(j *batchv1.Job) {
		now := metav1.Now()
		j.Status.Active, j.Status.Succeeded, j.Status.CompletionTime = 0, 1, &now
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastTransitionTime: now,
		})
	})
}

// A PV was once removed without a delete of its volume, and no event said so.
func TestADeleteIsNotDoneByAPodOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.adopt(contract.Delete)
		w.Until("the PV is removed", time.Minute, func() bool { return len(fakecluster.List[*corev1.PersistentVolume](w)) == 0 })
		if len(w.Storage) > 0 || len(w.RunsOf(contract.Delete)) != 1 {
			t.Errorf("%d volumes are left, after %d runs", len(w.Storage), len(w.RunsOf(contract.Delete)))
		}
	})
}

// A size was once written that no volume had.
func TestAnExpandIsNotDoneByAPodOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.requestSize("100Gi")
		w.adopt(contract.Expand)
		w.Until("the PV has the size", time.Minute, func() bool { return w.PVOf(claim).Spec.Capacity.Storage().String() == "100Gi" })
		if len(w.RunsOf(contract.Expand)) != 1 {
			t.Errorf("after %d runs", len(w.RunsOf(contract.Expand)))
		}
	})
}

// A provision whose pod was removed, finalizers and all, still runs, although a pod of others has
// completed its Job.
func TestNoRunStartsBesideAProvisionWhoseJobAPodOfOthersCompletes(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runningPod(worksBeforePV)
		w.Until("the volume is made", time.Minute, func() bool { return len(w.Storage) == 1 })
		w.lose()
		w.adopt(contract.Provision)
		w.Advance(time.Second)
		fakecluster.Vanish(w, pod)
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(2 * time.Minute)
		w.mustNotOverlap(pod, contract.Delete)
	})
}
