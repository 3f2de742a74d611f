package skew_test

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// story is what happens to claims, from their creation to the end of their volumes. A story that
// stands in a released version's folder is not changed any more, since its images go on after it.
type story struct {
	name string
	// does is what containers do, and newer what those of a later image do, if there is one.
	does, newer func(*fakecluster.Run) fakecluster.Exit
	// keys are those of the config, class changes the class, choices are the nodes that the
	// scheduler selects.
	keys    []string
	class   []func(*storagev1.StorageClass)
	choices []string
	// says is the reason of the event about a claim that is not served, empty if all are.
	says string
	// tell lets the story happen.
	tell func(*world)
}

// newerImage is the image of a config that was changed.
const newerImage = "localhost/gold:v2"

func (s story) images() map[string]func(*fakecluster.Run) fakecluster.Exit {
	newer := s.newer
	if newer == nil {
		newer = fakecluster.Works
	}
	return map[string]func(*fakecluster.Run) fakecluster.Exit{fakecluster.GoldImage: s.does, newerImage: newer}
}

var stories = []story{
	{name: "bound-and-deleted", does: fakecluster.Works, tell: boundAndDeleted},
	{name: "attempts", does: failsTwice, says: reason.Stalled, keys: []string{"max-attempts", "2"}, tell: attempts},
	{name: "abandoned", does: failsTwice, tell: abandoned},
	{name: "batch", does: failsForTwo, keys: []string{"batch-size", "8"}, tell: batch},
	{name: "described", does: fakecluster.Always(describes), keys: []string{"write-pv", "dispatcher", "service-account-name", ""}, tell: boundAndDeleted},
	{name: "expanded", does: failsToExpand, keys: []string{"verbs", "provision,delete,expand"}, class: []func(*storagev1.StorageClass){fakecluster.Expandable}, tell: expanded},
	{name: "moved-on", does: fakecluster.Script(fakecluster.Halfway(75)), tell: movedOn},
	{name: "replaced", does: fakecluster.Script(tooSmall), tell: boundAndDeleted},
	{name: "rescheduled", does: fullOn("node-1"), class: []func(*storagev1.StorageClass){fakecluster.WaitForFirstConsumer}, choices: []string{"node-1", "node-2"}, tell: boundAndDeleted},
	{name: "retained", does: fakecluster.Works, class: []func(*storagev1.StorageClass){retains}, tell: retained},
	{name: "adopted", does: fakecluster.Always(adopts), tell: retained},
	{name: "cloned", does: fakecluster.Works, keys: []string{"data-sources", "PersistentVolumeClaim"}, tell: cloned},
	{name: "without-config", does: fakecluster.Works, says: reason.WaitingForConfig, tell: withoutConfig},
	{name: "slots", does: fakecluster.Works, keys: []string{"max-parallel", "1"}, tell: slots},
	{name: "forced", does: fakecluster.Works, tell: forced},
	{name: "rival", does: misnamed, says: reason.VolumeInDoubt, tell: rival},
}

// setUp creates the class, its config, and two nodes.
func (w *world) setUp() {
	w.CreateNode("node-1")
	w.CreateNode("node-2")
	w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, w.story.class...)
	w.CreateServiceAccount("true")
	w.CreateConfig("gold", "gold", w.story.keys...)
	w.Start()
}

// served waits until a claim is bound, and nothing is left to write about it.
func (w *world) served(names ...string) {
	for _, name := range names {
		w.until(name+" is bound", w.IsBound(name))
	}
	w.until("the records are released", func() bool { return len(w.HeldRecords()) == 0 })
	for _, name := range names {
		w.until("the result is shown on "+name, func() bool { return w.Claim(name).Annotations[contract.AnnResult] == "succeeded" })
	}
}

// deleted lets users delete all claims, and waits until nothing is left.
func (w *world) deleted() {
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		fakecluster.Delete(w, fakecluster.User, claim)
	}
	w.until("nothing is left", w.Empty)
	w.until("the Jobs have expired", func() bool { return !fakecluster.Any(w, func(*batchv1.Job) bool { return true }) })
}

func boundAndDeleted(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.served("data")
	w.deleted()
}

// failsTwice makes the volume and fails, with each of its first two runs. The first undo fails, too.
func failsTwice(r *fakecluster.Run) fakecluster.Exit {
	switch {
	case r.Verb == contract.Provision && r.Number <= 2:
		return fakecluster.Halfway(75)(r)
	case r.Verb == contract.Delete && r.Number == 1:
		return fakecluster.Exit{Code: 75, Message: "the storage is down"}
	default:
		return fakecluster.Works(r)
	}
}

// attempts: a claim has had its last attempt.
func attempts(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.until("no attempt is left", func() bool { return len(w.Events.About("", reason.Stalled)) > 0 })
	w.deleted()
}

// abandoned: a claim is deleted between its attempts.
func abandoned(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.until("it has failed twice", func() bool {
		return len(w.RunsOf(contract.Provision)) == 2 && w.Claim("data").Annotations[contract.AnnAttempts] == "2"
	})
	w.deleted()
}

// failsForTwo fails the first run for each claim whose name ends with a two.
func failsForTwo(r *fakecluster.Run) fakecluster.Exit {
	if r.Number == 1 && r.Verb != contract.Expand && r.Request.Name == "data-2" {
		return fakecluster.Exit{Code: 75, Message: "claim: not yet"}
	}
	return fakecluster.Works(r)
}

// batch: three claims share their Jobs, and one of them fails at first.
func batch(w *world) {
	w.setUp()
	names := []string{"data-1", "data-2", "data-3"}
	for _, name := range names {
		w.CreateClaim(name)
	}
	w.served(names...)
	w.deleted()
}

// describes is an image with write-pv: dispatcher.
func describes(r *fakecluster.Run) fakecluster.Exit {
	r.CreateVolume()
	return fakecluster.Exit{Message: `{"source":{"nfs":{"server":"10.10.2.4","path":"/gold"}}}`}
}

// failsToExpand fails the first expand.
func failsToExpand(r *fakecluster.Run) fakecluster.Exit {
	if r.Verb == contract.Expand && r.Number == 1 {
		return fakecluster.Exit{Code: 75, Message: "claim: not now"}
	}
	return fakecluster.Works(r)
}

func setSize(claim *corev1.PersistentVolumeClaim, size string) {
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
}

func expanded(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.served("data")
	fakecluster.Update(w, fakecluster.User, w.Claim("data"), func(claim *corev1.PersistentVolumeClaim) { setSize(claim, "2Gi") })
	w.until("the claim has its size", func() bool { return w.hasItsSize(w.Claim("data")) })
	w.until("the records are released", func() bool { return len(w.HeldRecords()) == 0 })
	w.deleted()
}

// movedOn: the config is changed while a run fails under it.
func movedOn(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.until("it has failed once", func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
	w.UpdateConfig("image", newerImage)
	w.served("data")
	w.deleted()
}

// tooSmall writes a PV that the claim cannot be bound to.
func tooSmall(r *fakecluster.Run) fakecluster.Exit {
	r.CreateVolume()
	r.WritePV(func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1Mi")
	})
	return fakecluster.Exit{}
}

// fullOn is an image that finds no room on some nodes.
func fullOn(nodes ...string) func(*fakecluster.Run) fakecluster.Exit {
	return fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
		if slices.Contains(nodes, r.Request.SelectedNode) {
			return fakecluster.Halfway(73)(r)
		}
		return fakecluster.Works(r)
	})
}

func retains(class *storagev1.StorageClass) {
	class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
}

// adopts writes the PV of a volume that was there before, and is retained.
func adopts(r *fakecluster.Run) fakecluster.Exit {
	r.CreateVolume()
	r.WritePV(func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	return fakecluster.Exit{}
}

// retained: the volume of a deleted claim is kept, until an administrator lets it be deleted.
func retained(w *world) {
	w.setUp()
	claim := w.CreateClaim("data")
	w.served("data")
	fakecluster.Delete(w, fakecluster.User, claim)
	w.until("the claim is deleted", func() bool { return w.Claim("data") == nil })
	w.until("the PV is released", func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
	fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), deletes)
	w.deleted()
}

func deletes(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
}

// cloned: a claim is a clone of another.
func cloned(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.served("data")
	w.CreateClaim("clone", func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "data"}
	})
	w.served("clone")
	w.deleted()
}

// withoutConfig: a claim waits for the config of its class, and is deleted when neither exists any
// more.
func withoutConfig(w *world) {
	w.CreateNode("node-1")
	w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
	w.CreateServiceAccount("true")
	w.Start()
	w.CreateClaim("data")
	w.until("it waits for its config", func() bool { return len(w.Events.About("", reason.WaitingForConfig)) > 0 })
	config := w.CreateConfig("gold", "gold")
	w.served("data")
	fakecluster.Delete(w, fakecluster.Admin, config)
	fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
	w.deleted()
}

// slots: two claims have one slot.
func slots(w *world) {
	w.setUp()
	w.CreateClaim("data-1")
	w.CreateClaim("data-2")
	w.served("data-1", "data-2")
	w.deleted()
}

// forced: the pod of a run is deleted by force, so that it may run until its deadline.
func forced(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.until("the run is at work", func() bool { return len(w.RunningPods()) == 1 })
	w.NodeLost = true
	w.ForceDelete(w.RunningPods()[0])
	w.until("the outcome is recorded", func() bool { return len(w.Events.About("", reason.ProvisioningFailed)) > 0 })
	w.served("data")
	w.deleted()
}

// misnamed writes the PV of the volume under another name.
func misnamed(r *fakecluster.Run) fakecluster.Exit {
	if r.Verb != contract.Provision {
		return fakecluster.Works(r)
	}
	r.CreateVolume()
	r.WritePV(func(pv *corev1.PersistentVolume) { pv.Name = "mine" })
	return fakecluster.Exit{}
}

// rival: another PV stands for the volume, so the record is held, and the volume stays.
func rival(w *world) {
	w.setUp()
	w.CreateClaim("data")
	w.until("the claim is bound", w.IsBound("data"))
	w.until("the volume is in doubt", func() bool { return len(w.Events.About("", reason.VolumeInDoubt)) > 0 })
}
