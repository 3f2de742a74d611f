package observe

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/capacity"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Capacity is what is to be written about the capacity of one class.
type Capacity struct {
	Missing, Surplus []*storagev1.CSIStorageCapacity
	// Until is when a full node is to be opened again, zero if none is full.
	Until time.Time
}

// ObserveCapacity finds what is to be written about the capacity of a class, by its label. A class that no longer
// exists, or for whose claims no node is selected, needs no objects.
func (b *Observer) ObserveCapacity(label string) Capacity {
	var out Capacity
	var wanted []*storagev1.CSIStorageCapacity
	if class := b.publishedClass(label); class != nil {
		now, full := b.Clock.Now(), b.fullNodes(class)
		wanted = capacity.Wanted(capacity.Class{Name: class.Name, Provisioner: b.Provisioner, Namespace: b.Namespace}, full, now)
		for _, f := range full {
			if out.Until.IsZero() || f.Until.Before(out.Until) {
				out.Until = f.Until
			}
		}
	}
	out.Missing, out.Surplus = capacity.Compare(wanted, b.Caches.CapacitiesOf(label))
	return out
}

// publishedClass returns the class of a label if its capacity is to be published, or nil.
func (b *Observer) publishedClass(label string) *storagev1.StorageClass {
	for _, class := range b.Caches.Classes() {
		if config.ClassLabel(class.Name) == label && b.Publishes(class) {
			return class
		}
	}
	return nil
}

// Publishes reports whether the capacity of a class is to be published.
func (b *Observer) Publishes(class *storagev1.StorageClass) bool {
	return b.Caches.PublishesCapacity() && class.Provisioner == b.Provisioner && resolve.WaitsForNode(class)
}

// fullNodes returns the nodes that runs of a class have found full, by its Jobs. A run under an earlier config says
// nothing about this one.
func (b *Observer) fullNodes(class *storagev1.StorageClass) []capacity.Full {
	today := b.Today(class)
	var out []capacity.Full
	for _, job := range b.Caches.JobsOfClass(config.ClassLabel(class.Name)) {
		if job.Labels[jobs.LabelVerb] != string(contract.Provision) ||
			today.Target.Problem == nil && job.Annotations[contract.AnnRevision] != today.Config.Source.Revision() {
			continue
		}
		for _, uid := range jobs.UIDs(job) {
			if full, found := b.fullNode(job, uid); found {
				out = append(out, full)
			}
		}
	}
	return out
}

// fullNode returns the node that the run for one claim of a Job has found full, if it has. A node without a hostname
// label cannot be excluded.
func (b *Observer) fullNode(job *batchv1.Job, uid string) (capacity.Full, bool) {
	record := runs.RecordOf(job, uid)
	until := decide.FullUntil(decide.Run{Record: record})
	if !b.Clock.Now().Before(until) {
		return capacity.Full{}, false
	}
	request, err := runs.RecordedRequest(job.Spec.Template.Annotations, uid)
	host := b.TopologyOf(record.Node).Labels[corev1.LabelHostname]
	return capacity.Full{Host: host, Size: request.Size, Until: until}, err == nil && host != ""
}

// IsFull reports whether a Job says that a node had no room a moment ago.
func (b *Observer) IsFull(job *batchv1.Job) bool {
	for _, uid := range jobs.UIDs(job) {
		if b.Clock.Now().Before(decide.FullUntil(decide.Run{Record: runs.RecordOf(job, uid)})) {
			return true
		}
	}
	return false
}

// observePublished notes if the scheduler is not told yet that the selected node of a pending claim had no room: it
// would select the node again.
func (b *Observer) observePublished(o *Observation) {
	t, class := &o.View.Provision, o.Provision.Class
	if class == nil || !b.Publishes(class) {
		return
	}
	labelsOf := labels.Set(b.TopologyOf(t.Node).Labels)
	size := o.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	label := config.ClassLabel(storagehelpers.GetPersistentVolumeClaimClass(o.Claim))
	t.Unpublished = capacity.Admits(b.Caches.CapacitiesOf(label), labelsOf, size.Value())
}
