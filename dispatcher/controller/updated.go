package controller

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// passOn handles an object that was updated: an index that its old state has left needs that, too.
// The old state is left out where it concerns no other UIDs. A UID that is enqueued twice may be
// reconciled twice, and its events emitted twice.
func passOn[T any](changed func(T), old, now T, moved bool) {
	if moved {
		changed(old)
	}
	changed(now)
}

func (c *Controller) claimUpdated(old, now *corev1.PersistentVolumeClaim) {
	moved := hasClaimMoved(old, now)
	passOn(c.enqueueClaim, old, now, moved)
	if moved || old.Status.Phase != now.Status.Phase { // what its clones wait for
		c.enqueueClones(now)
	}
	c.measureBound(old, now)
}

func (c *Controller) pvUpdated(old, now *corev1.PersistentVolume) {
	passOn(c.pvChanged, old, now, hasPVMoved(old, now))
	c.enqueueBesideTrash(old, now)
}

func (c *Controller) podUpdated(old, now *corev1.Pod) {
	passOn(c.podChanged, old, now, !maps.Equal(old.Labels, now.Labels))
}

// revisionUpdated handles a revision in which more has changed than its note of the trash: that is
// written on each revision of a class, and nothing waits for it.
func (c *Controller) revisionUpdated(old, now *appsv1.ControllerRevision) {
	if hasRevisionMoved(old, now) {
		c.revisionChanged(old)
		c.revisionChanged(now)
	}
}

func hasRevisionMoved(old, now *appsv1.ControllerRevision) bool {
	before, after := old.DeepCopy(), now.DeepCopy()
	for _, one := range []*appsv1.ControllerRevision{before, after} {
		delete(one.Annotations, config.AnnTrash)
		one.ResourceVersion = ""
	}
	return !equality.Semantic.DeepEqual(before, after)
}

func hasClaimMoved(old, now *corev1.PersistentVolumeClaim) bool {
	return old.UID != now.UID || old.Spec.VolumeName != now.Spec.VolumeName
}

// hasPVMoved reports whether the old state of a PV may concern other owners, by its annotations and
// its claimRef, or other rivals, by its volume source.
func hasPVMoved(old, now *corev1.PersistentVolume) bool {
	return !maps.Equal(old.Annotations, now.Annotations) || !equality.Semantic.DeepEqual(old.Spec, now.Spec)
}

// hasJobMoved reports whether the old state of a Job concerns claims, a class or a revision that
// the new one does not.
func hasJobMoved(old, now *batchv1.Job) bool {
	return !maps.Equal(old.Labels, now.Labels) || old.Annotations[jobs.AnnUIDs] != now.Annotations[jobs.AnnUIDs] ||
		old.Annotations[contract.AnnRevision] != now.Annotations[contract.AnnRevision]
}
