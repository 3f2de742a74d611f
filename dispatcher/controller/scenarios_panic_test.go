package controller_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

const panics = "flex_dispatcher_panics_total"

func TestAPanicConcernsOnlyTheClaimThatCausesIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Panics = true
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Start()
		poison, healed := w.CreateClaim("poison"), false
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if job, ok := obj.(*batchv1.Job); ok && job.Labels[contract.LabelClaimUID] == string(poison.UID) && !healed {
				panic("a bug")
			}
			return nil
		})
		w.Advance(time.Hour)
		if n := scrape(w.T, w.metrics)[panics]; n < 10 || n > 100 {
			w.T.Errorf("%v panics in an hour: the claim must be retried, and with a backoff", n)
		}
		for i := range 20 {
			w.CreateClaim(fmt.Sprint("other-", i))
		}
		w.Until("the others are bound", 5*time.Minute, func() bool { return len(w.Runs) == 20 })
		healed = true
		w.Until("it is bound, too", 2*time.Minute, w.IsBound("poison"))
	})
}

func TestAPanicInABatchLeavesNoMemberWaiting(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		panicked := false
		w.Panics = true
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if job, ok := obj.(*batchv1.Job); ok && len(jobs.UIDs(job)) > 1 && !panicked {
				panicked = true
				panic("a bug")
			}
			return nil
		})
		w.Start()
		for i := range 20 {
			w.CreateClaim(fmt.Sprint("data-", i))
		}
		w.Until("all are bound", 5*time.Minute, w.AllBound)
		w.mustCount([]string{panics}, map[string]float64{panics: 1})
	})
}

func TestAPanicAboutARevisionConcernsOnlyThatRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		panicked := 0
		w.Panics = true
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if _, ok := obj.(*appsv1.ControllerRevision); ok && panicked < 3 {
				panicked++
				panic("a bug")
			}
			return nil
		})
		w.lastVolumeGoes(first)
		w.Until("the revision is collected", 2*time.Hour, func() bool { return len(fakecluster.List[*appsv1.ControllerRevision](w)) == 1 })
		w.mustCount([]string{panics}, map[string]float64{panics: 3})
	})
}

// copyRevision stores a revision of the config gold as an administrator copies it from another
// namespace.
func (w *world) copyRevision(from string) *appsv1.ControllerRevision {
	src := config.Source{
		Namespace: from, Name: "gold", Class: "gold", Reclaim: string(corev1.PersistentVolumeReclaimDelete), Binding: "Immediate",
		Data: map[string]string{"image": newer, "verbs": "provision,delete,expand", "service-account-name": "writer"},
	}
	return fakecluster.Create(w, fakecluster.Admin, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: src.RevisionName(), Namespace: fakecluster.ConfigNamespace,
			Labels: map[string]string{config.LabelManagedBy: config.ManagedBy, config.LabelClass: config.ClassLabel("gold")},
		},
		Data: runtime.RawExtension{Raw: src.Encode()}, Revision: 1,
	})
}

func TestARevisionFromANamespaceThatIsNotServedEndsNoLeader(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.copyRevision("old-home")
		w.Advance(time.Minute)
		w.mustCount([]string{panics}, map[string]float64{panics: 0})
		w.provisioned("data")
	})
}

func TestRevisionOfItsOwnDeletesWhenItWasCopiedFromAnotherNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		claim := w.provisioned("data")
		moved := w.copyRevision("old-home")
		name := moved.Namespace + "/" + moved.Name
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnRevision, name) })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the volume has gone", time.Minute, w.Empty)
		job := w.CreatedJobs(contract.Delete)[0].Now.(*batchv1.Job)
		if r := w.Runs[1]; r.Image != newer || job.Annotations[contract.AnnRevision] != name {
			w.T.Errorf("deleted by %s, under the revision %s, want %s", r.Image, job.Annotations[contract.AnnRevision], name)
		}
	})
}
