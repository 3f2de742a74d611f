package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// publishing is chosenClass with dispatchers that publish capacity.
func (w *world) publishing(does func(*fakecluster.Run) fakecluster.Exit, choices []string) {
	w.options.PublishCapacity = true
	w.chosenClass(does, choices)
}

func (w *world) capacities() []*storagev1.CSIStorageCapacity {
	return fakecluster.List[*storagev1.CSIStorageCapacity](w)
}

// isPublished reports whether the scheduler reads capacity, and how many objects there are.
func (w *world) isPublished(objects int) func() bool {
	return func() bool {
		return len(fakecluster.List[*storagev1.CSIDriver](w)) == 1 && len(w.capacities()) == objects
	}
}

func TestPublishedCapacityKeepsAClaimFromAFullNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(roomOn("node-2"), []string{"node-1", "node-1", "node-1", "node-2"})
		w.Start()
		w.Until("the scheduler reads it", time.Minute, w.isPublished(1))
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
		if got, want := w.where(), []string{"provision on node-1", "delete on node-1", "provision on node-2"}; !slices.Equal(got, want) {
			w.T.Errorf("ran %v, want %v", got, want)
		}
		if n := len(w.returns()); n != 1 {
			w.T.Errorf("the node was taken off %d times, want once: the capacity is published before", n)
		}
		w.Until("the node is open again", 6*time.Minute, w.isPublished(1))
		var writes []string
		for _, c := range w.Server.History() {
			if c.Resource == "csistoragecapacities" {
				writes = append(writes, c.Verb)
			}
		}
		if want := []string{"create", "create", "create", "delete", "create", "delete", "delete"}; !slices.Equal(writes, want) {
			w.T.Errorf("%v, want 3 writes when the node is full, 3 when it is open again, and new objects before old ones go", writes)
		}
	})
}

// A smaller volume may fit where a larger one did not.
func TestAFullNodeStillTakesASmallerClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Request.Size >= 1<<30 {
				return fakecluster.Fails(73, "")(r)
			}
			return fakecluster.Works(r)
		}), []string{"node-1"})
		w.Start()
		w.CreateClaim("data")
		w.Until("the node is full", time.Minute, func() bool { return len(w.returns()) == 1 && len(w.capacities()) == 2 })
		w.CreateClaim("small", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("512Mi")
		})
		w.Until("the small one is bound", time.Minute, w.IsBound("small"))
		if n := len(w.CreatedJobs(contract.Provision)); n != 2 || w.IsBound("data")() {
			w.T.Errorf("%d runs, the claim bound: %t", n, w.IsBound("data")())
		}
		w.Advance(5 * time.Minute)
		if n := len(w.CreatedJobs(contract.Provision)); n != 3 {
			w.T.Errorf("%d runs: when the node is open again it is tried again", n)
		}
	})
}

// From the moment on that the CSIDriver exists, the scheduler places no pod of a class without objects.
func TestEveryClassHasItsObjectsBeforeTheDriver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(fakecluster.Works, []string{"node-1"})
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateClass("now", corev1.PersistentVolumeReclaimDelete)
		w.CreateClass("theirs", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer, func(c *storagev1.StorageClass) { c.Provisioner = "example.com/other" })
		w.Start()
		w.Until("the scheduler reads it", time.Minute, w.isPublished(2))
		var written []string
		for _, c := range w.Server.History() {
			switch obj := c.Now.(type) {
			case *storagev1.CSIDriver:
				written = append(written, "driver "+obj.Name)
			case *storagev1.CSIStorageCapacity:
				written = append(written, "capacity of "+obj.StorageClassName)
			}
		}
		slices.Sort(written[:2])
		if want := []string{"capacity of gold", "capacity of silver", "driver flex-provisioner.io"}; !slices.Equal(written, want) {
			w.T.Errorf("wrote %v, want %v", written, want)
		}
		w.CreateClass("bronze", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.Until("a new class has one, too", time.Minute, w.isPublished(3))
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "silver"))
		w.Until("a class that no longer exists has none", time.Minute, w.isPublished(2))
		fakecluster.Delete(w, fakecluster.Admin, w.capacities()[0])
		w.Until("what was deleted by hand is there again", time.Minute, w.isPublished(2))
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.CSIDriver](w, "", contract.ProvisionerName))
		w.Until("the driver, too", 2*time.Minute, w.isPublished(2))
	})
}

// Publishing is a help, and no condition: the claim returns all the same.
func TestAClaimReturnsAlthoughItsCapacityCannotBePublished(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(roomOn("node-2"), []string{"node-1", "node-2"})
		w.Start()
		w.Until("the scheduler reads it", time.Minute, w.isPublished(1))
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if _, capacity := obj.(*storagev1.CSIStorageCapacity); capacity {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "csistoragecapacities"}, obj.GetName(), nil)
			}
			return nil
		})
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
		if gap := w.returns()[0].At.Sub(w.Runs[0].At); gap < 9*time.Second || gap > 15*time.Second {
			w.T.Errorf("it returned %s after its run, want 10 s", gap)
		}
	})
}

// A change of the config makes a new request: what nodes said under the old one holds no longer.
func TestAnotherConfigOpensAFullNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(fakecluster.Always(fakecluster.Fails(73, "")), []string{"node-1"})
		w.Start()
		w.CreateClaim("data")
		w.Until("the node is full", time.Minute, func() bool { return len(w.returns()) == 1 && len(w.capacities()) == 2 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.UpdateConfig("pool", "larger")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
	})
}

func TestACSIDriverOfOthersIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		fakecluster.Create(w, fakecluster.Admin, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: contract.ProvisionerName}})
		w.publishing(fakecluster.Works, []string{"node-1"})
		w.Start()
		w.Advance(3 * time.Minute)
		if d := fakecluster.Get[*storagev1.CSIDriver](w, "", contract.ProvisionerName); d.Spec.StorageCapacity != nil {
			w.T.Errorf("it was changed to %+v", d.Spec)
		}
	})
}

func TestACSIDriverOfOursThatWasChangedIsPublishingAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(fakecluster.Works, []string{"node-1"})
		w.Start()
		w.Until("the scheduler reads it", time.Minute, w.isPublished(1))
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*storagev1.CSIDriver](w, "", contract.ProvisionerName), func(d *storagev1.CSIDriver) { d.Spec.StorageCapacity = new(false) })
		w.Until("it is changed back", 2*time.Minute, func() bool {
			return *fakecluster.Get[*storagev1.CSIDriver](w, "", contract.ProvisionerName).Spec.StorageCapacity
		})
	})
}

func TestWithoutTheFlagNothingIsPublished(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"})
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
		for _, r := range w.Dispatcher().Requests() {
			if resource := r.GetResource().Resource; resource == "csidrivers" || resource == "csistoragecapacities" {
				w.T.Errorf("%s %s, for which the base grants no permission", r.GetVerb(), resource)
			}
		}
	})
}

// What is published derives from the Jobs, whatever a dispatcher was about to write when it died.
func TestWhatIsPublishedOutlivesTheDispatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		w.publishing(roomOn("node-2"), []string{"node-1", "node-2"})
		w.DieAfterEveryWrite, w.Downtime = true, time.Second
		w.StartMortal(1)
		w.Until("the scheduler reads it", time.Minute, w.isPublished(1))
		w.CreateClaim("data")
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
		w.Until("the node is open again", 10*time.Minute, w.isPublished(1))
	})
}
