package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func grow(w *world, claim *corev1.PersistentVolumeClaim, size string) {
	fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// A tenant edits the size of a claim of its own again and again while that is in a batch of expands.
// The claims of other tenants in the batch, and the class's slot, do not wait for the write that the
// tenant's edits make fail.
func TestATenantThatEditsItsClaimHoldsNoGateOfOthers(t *testing.T) {
	const most = 500
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		first := w.provisioned("first")
		evil := []*corev1.PersistentVolumeClaim{w.CreateClaim("evil-0", inNamespace("evil")), w.CreateClaim("evil-1", inNamespace("evil"))}
		w.Until("they are bound", time.Minute, w.AllBound)
		victims := []*corev1.PersistentVolumeClaim{w.provisioned("data-0"), w.provisioned("data-1"), w.provisioned("data-2")}
		w.Advance(time.Hour)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 30 * time.Second}
		grow(w, first, "2Gi")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		for _, c := range append(evil, victims...) {
			grow(w, c, "2Gi")
			w.NoPodFor[c.Name] = true
		}
		inBatch := func() *batchv1.Job {
			for _, c := range w.CreatedJobs(contract.Expand) {
				job := c.Now.(*batchv1.Job)
				uids := jobs.UIDs(job)
				for _, e := range evil {
					switch {
					case slices.Contains(uids, string(e.UID)) && len(uids) > 1:
						return job
					case slices.Contains(uids, string(e.UID)):
						w.NoPodFor[e.Name] = false // it went alone
					}
				}
			}
			return nil
		}
		w.Until("one of the tenant's is in a batch", 30*time.Minute, func() bool { return inBatch() != nil })
		edits := 0
		w.Server.Overtake(func(_ string, at fakecluster.Key, _ []byte) func(fakecluster.Object) {
			if at.Resource != "persistentvolumeclaims" || at.Namespace != "evil" || edits == most {
				return nil
			}
			edits++
			return func(o fakecluster.Object) {
				o.(*corev1.PersistentVolumeClaim).Spec.Resources.Requests[corev1.ResourceStorage] = *resource.NewQuantity(2<<30+1+int64(edits), resource.BinarySI)
			}
		})
		for _, e := range evil {
			if slices.Contains(jobs.UIDs(inBatch()), string(e.UID)) {
				grow(w, e, "2147483649")
			}
		}
		for _, c := range append(evil, victims...) {
			w.NoPodFor[c.Name] = false
		}
		w.Until("the batch runs, or the tenant has edited so often", 2*time.Hour, func() bool { return edits == most || len(w.RunningPods()) == 1 })
		if edits == most {
			w.T.Errorf("%d claims of others wait for a write on the tenant's, which has failed %d times", len(jobs.UIDs(inBatch()))-1, edits)
		}
		w.Advance(10 * time.Minute)
	})
}
