package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// loseNode lets a node stop, and Kubernetes notice it.
func (w *world) loseNode(name string) {
	w.T.Helper()
	w.Frozen[name] = true
	node := fakecluster.Get[*corev1.Node](w, "", name)
	fakecluster.Update(w, "node-lifecycle-controller", node, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
}

// The container of an expand has ended, and its pod has not when its node is lost. The delete of its
// volume took a slot and the others of its batch with it, for nine minutes again and again.
func TestPodsOnALostNodeHoldUpNoOtherClaims(t *testing.T) {
	for _, batch := range []string{"1", "8"} {
		t.Run("batch "+batch, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(fakecluster.Works, "max-parallel", "2", "batch-size", batch)
				w.CreateNode("node-1")
				w.Start()
				var stuck, others []*corev1.PersistentVolumeClaim
				for i := range 6 {
					stuck = append(stuck, w.CreateClaim(fmt.Sprint("stuck-", i)))
					others = append(others, w.CreateClaim(fmt.Sprint("other-", i)))
				}
				w.Until("all are bound", time.Minute, w.AllBound)
				w.Advance(10 * time.Minute)
				w.linger(fakecluster.Works)
				for _, claim := range stuck {
					fakecluster.Update(w, fakecluster.User, w.Claim(claim.Name), func(c *corev1.PersistentVolumeClaim) {
						c.Spec.Resources.Requests["storage"] = resource.MustParse("2Gi")
					})
				}
				w.Advance(8 * time.Second)
				w.loseNode("node-1")
				w.CreateNode("node-2")
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.Advance(time.Minute)
				for _, claim := range append(stuck, others...) {
					fakecluster.Delete(w, fakecluster.User, w.Claim(claim.Name))
				}
				w.CreateClaim("new")
				w.Until("a new claim is bound", 5*time.Minute, w.IsBound("new"))
				w.Until("the volumes of the others are deleted", 10*time.Minute, func() bool {
					for _, claim := range others {
						if w.PVOf(claim) != nil {
							return false
						}
					}
					return true
				})
			})
		})
	}
}

// Another client has taken the label of its claim off a Job. Nothing was recorded, and the volume was
// lost with the claim.
func TestAJobWithoutTheLabelOfItsClaimIsRecorded(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75)))
			w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: w.Images[fakecluster.GoldImage].Does, Takes: time.Minute}
			w.Start()
			claim := w.CreateClaim("data")
			w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
			fakecluster.Update(w, fakecluster.Admin, w.CreatedJobs("")[0].Now.(*batchv1.Job), func(job *batchv1.Job) {
				delete(job.Labels, jobs.LabelMember+string(claim.UID))
			})
			if !deleted {
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				return
			}
			fakecluster.Delete(w, fakecluster.User, claim)
			w.Until("nothing is left", 3*time.Hour, w.Empty)
		})
	}
}

// The node may come back, and its container continue to copy.
func TestTheSourceOfACloneStaysWhileItsNodeIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		cloning := w.cloneAtWork()
		w.loseNode(cloning.Spec.NodeName)
		w.force(cloning)
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		w.Advance(3 * time.Hour)
		if n := len(w.RunsOf("delete")); n > 0 {
			w.T.Errorf("%d deletes ran although a container on the lost node may copy the volume", n)
		}
	})
}

// The answer to the creation of a Job is lost, and there is no Job. The claim was tried again after
// five minutes.
func TestASlotOfAJobThatDoesNotExistIsUsedSoon(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Start()
		refused := 0
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if _, ok := obj.(*batchv1.Job); ok && verb == "create" && refused < 1 {
				refused++
				return apierrors.NewTimeoutError("etcdserver: request timed out", 1)
			}
			return nil
		})
		w.CreateClaim("first")
		w.Until("it is bound", time.Minute, w.IsBound("first"))
	})
}
