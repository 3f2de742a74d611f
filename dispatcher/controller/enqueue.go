package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// firstLooks is how many waiting claims a new leader looks at in a second, beside everything that changes. All of them
// may have an event to tell.
const firstLooks = 100

// enqueue adds a UID to the queue of the leader. A replica that does not lead never empties its queue, so nothing is
// added there.
func (c *Controller) enqueue(uid types.UID) {
	if c.leading.Load() {
		c.add(uid)
	}
}

// add adds a UID to the queue.
func (c *Controller) add(uid types.UID) {
	c.latency.Enqueued(uid)
	c.queue.Add(uid)
}

// enqueueRevisionNamed does the same with a config revision, "namespace/name".
func (c *Controller) enqueueRevisionNamed(name string) {
	if c.leading.Load() {
		c.revisions.Add(name)
	}
}

// enqueueAll enqueues what the caches hold when this replica begins to lead: first what has a Job or a PV, and then,
// over time, the claims that wait for one.
func (c *Controller) enqueueAll() {
	waiting := 0
	for _, label := range c.caches.ClassesInUse() {
		for _, job := range c.caches.JobsOfClass(label) {
			c.jobChanged(job)
		}
		for _, pv := range c.caches.PVsOfClass(label) {
			c.pvChanged(pv)
		}
		for _, claim := range c.caches.ClaimsOfClass(label) {
			if claim.Spec.VolumeName == "" && c.isOfOurClass(claim) {
				c.queue.AddAfter(claim.UID, time.Duration(waiting/firstLooks)*time.Second)
				waiting++
				continue
			}
			c.claimChanged(claim)
		}
	}
	for _, name := range c.caches.RevisionNames() {
		c.revisions.Add(name)
	}
	c.enqueueCapacities()
}

// isOfOurClass reports whether a claim's class names our provisioner. The claims of others are looked at in no time,
// and must not hold up ours.
func (c *Controller) isOfOurClass(claim *corev1.PersistentVolumeClaim) bool {
	class := c.caches.Class(storagehelpers.GetPersistentVolumeClaimClass(claim))
	return class != nil && class.Provisioner == c.opts.Provisioner
}
