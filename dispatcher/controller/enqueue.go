package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
)

// firstLooks is how many waiting claims a new leader looks at in a second, beside everything that
// changes. All of them may have an event to tell.
const firstLooks = 100

// enqueue adds a UID to the queue of the leader. A replica that does not lead never empties its
// queue, so nothing is added there. A Job that has lost its labels and annotations names no claim:
// to list the Jobs of none would fail again and again.
func (c *Controller) enqueue(uid types.UID) {
	if c.leading.Load() && uid != "" {
		c.claims.Queue.Add(uid)
	}
}

// quietAfter debounces changes that need no immediate action. Without it a claim of a burst is
// reconciled about twelve times: for each step of its Job's pod and of its binding.
const quietAfter = 300 * time.Millisecond

// enqueueLater adds a UID to the queue of the leader after that time.
func (c *Controller) enqueueLater(uid types.UID) {
	if c.leading.Load() && uid != "" {
		c.claims.Queue.AddAfter(uid, quietAfter)
	}
}

// enqueueing returns how the UID of an object is enqueued: later if nothing is to be done for it,
// as far as the object shows.
func (c *Controller) enqueueing(atRest bool) func(types.UID) {
	if atRest {
		return c.enqueueLater
	}
	return c.enqueue
}

// enqueueRun adds a Job to the queue of the leader, by "namespace/name".
func (c *Controller) enqueueRun(key string) {
	if c.leading.Load() {
		c.runs.Queue.Add(key)
	}
}

// enqueueRevisionNamed does the same with a config revision, "namespace/name".
func (c *Controller) enqueueRevisionNamed(name string) {
	if c.leading.Load() {
		c.revisions.Add(name)
	}
}

// restLooks is how many volumes at rest a new leader looks at in restEvery. Of 100,000 the last one
// is looked at after 20 s. If all of them were enqueued at once, every claim that is created
// meanwhile would wait behind them.
const (
	restLooks = 500
	restEvery = 100 * time.Millisecond
)

// enqueueAll enqueues what the caches hold when this replica begins to lead: first what has a Job,
// PVs that are not at rest, and pods whose Job no longer exists. Claims that wait for a volume, and
// volumes at rest, follow over time.
func (c *Controller) enqueueAll() {
	waiting, atRest := 0, 0
	for _, label := range c.caches.ClassesInUse() {
		for _, job := range c.caches.Jobs.By(cluster.ByClass, label) {
			c.jobChanged(job)
			c.actor.ReportLeft(job) // the last leader may have died before its event was written
		}
		for _, pv := range c.caches.PVs.Moving(cluster.ByClass, label) {
			c.pvChanged(pv)
		}
		for _, claim := range c.caches.Claims.Moving(cluster.ByClass, label) {
			c.enqueueFirstClaim(claim, &waiting)
		}
		for _, pv := range c.caches.PVs.Resting(cluster.ByClass, label) {
			c.enqueueRestingPV(pv, &atRest)
		}
		for _, claim := range c.caches.Claims.Resting(cluster.ByClass, label) {
			if !c.caches.PVs.Rests(contract.PVName(string(claim.GetUID()))) {
				c.claimChanged(cut.Whole(claim).(*corev1.PersistentVolumeClaim))
			}
		}
	}
	for _, pod := range c.caches.PodsWithoutJob() {
		c.podChanged(pod) // the last leader may have died before it took its finalizer off
	}
	for _, stored := range c.caches.Revisions.All() {
		name := stored.Namespace + "/" + stored.Name
		c.revisions.Add(name)
	}
}

// enqueueRestingPV enqueues a PV at rest when this replica begins to lead. before counts such ones.
func (c *Controller) enqueueRestingPV(pv *cut.Resting, before *int) {
	uid, ours := uidOfPV(pv.GetName())
	if !ours {
		c.pvChanged(cut.Whole(pv).(*corev1.PersistentVolume))
		return
	}
	c.claims.Queue.AddAfter(uid, time.Duration(*before/restLooks)*restEvery)
	*before++
}

// enqueueFirstClaim enqueues a claim that is not at rest when this replica begins to lead. waiting
// counts those without a volume.
func (c *Controller) enqueueFirstClaim(claim *corev1.PersistentVolumeClaim, waiting *int) {
	if claim.Spec.VolumeName != "" || !c.isOfOurClass(claim) {
		c.claimChanged(claim)
		return
	}
	c.claims.Queue.AddAfter(claim.UID, time.Duration(*waiting/firstLooks)*time.Second)
	*waiting++
}

// isOfOurClass reports whether a claim's class names our provisioner. Other provisioners' claims
// are cheap to skip, and must not hold up ours.
func (c *Controller) isOfOurClass(claim *corev1.PersistentVolumeClaim) bool {
	class := c.caches.Classes.Named(storagehelpers.GetPersistentVolumeClaimClass(claim))
	return class != nil && class.Provisioner == c.opts.Provisioner
}
