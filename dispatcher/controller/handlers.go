package controller

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// handlers returns the functions that enqueue the UIDs that a changed object concerns.
func (c *Controller) handlers() cluster.Handlers {
	return cluster.Handlers{
		Active: c.leading.Load,
		Claim:  guarded(c, c.claimChanged), ClaimUpdated: guardedUpdate(c, c.claimUpdated), PV: guarded(c, c.pvCameOrWent), PVUpdated: guardedUpdate(c, c.pvUpdated),
		Class: guarded(c, c.classChanged), Node: guarded(c, c.nodeChanged), Detached: guarded(c, c.pvDetached), Config: guarded(c, c.configChanged),
		Account:  guarded(c, c.accountChanged),
		Revision: guarded(c, c.revisionChanged), RevisionUpdated: guardedUpdate(c, c.revisionUpdated),
		Job: guarded(c, c.jobChanged), JobUpdated: guardedUpdate(c, c.jobUpdated), Pod: guarded(c, c.podChanged), PodUpdated: guardedUpdate(c, c.podUpdated),
	}
}

// claimChanged also enqueues what waits for a claim to exist, or to be deleted.
func (c *Controller) claimChanged(claim *corev1.PersistentVolumeClaim) {
	c.enqueueClaim(claim)
	c.enqueueClones(claim)
	if pv := c.caches.PVs.Named(claim.Spec.VolumeName); pv != nil {
		c.enqueueBesideTrash(nil, pv) // it may have been released before the cache showed the end of the claim
	}
}

// enqueueClaim also enqueues the PV's UID. The claim behind a populator is bound to the PV of
// another UID, which must be reconciled when the claim is deleted.
func (c *Controller) enqueueClaim(claim *corev1.PersistentVolumeClaim) {
	enqueue := c.enqueueing(pvs.IsAtRestClaim(claim))
	enqueue(claim.UID)
	if uid, ours := uidOfPV(claim.Spec.VolumeName); ours {
		enqueue(uid)
	}
}

func (c *Controller) enqueueClones(claim *corev1.PersistentVolumeClaim) {
	for _, clone := range c.caches.Claims.By(cluster.BySource, claim.Namespace+"/"+claim.Name) {
		c.enqueue(clone.UID)
	}
}

// pvCameOrWent is also called for a PV that was released while the watch was interrupted.
func (c *Controller) pvCameOrWent(pv *corev1.PersistentVolume) {
	c.pvChanged(pv)
	c.enqueueBesideTrash(nil, pv)
}

func (c *Controller) pvChanged(pv *corev1.PersistentVolume) {
	enqueue := c.enqueueing(pvs.IsAtRest(pv))
	if uid, ours := uidOfPV(pv.Name); ours {
		enqueue(uid)
	}
	c.enqueueOwners(pv, enqueue)
	c.enqueueRivals(pv)
	c.enqueueRevision(pv.Annotations[contract.AnnRevision])
}

// pvDetached enqueues a released PV, whose volume may be deleted when no node has it attached any
// more.
func (c *Controller) pvDetached(pv *corev1.PersistentVolume) {
	if pvs.IsReleased(pv) {
		c.enqueuePV(pv.Name)
	}
}

// uidOfPV returns the UID after which a PV is named, if it is.
func uidOfPV(name string) (types.UID, bool) {
	uid, ours := strings.CutPrefix(name, contract.PVName(""))
	return types.UID(uid), ours
}

// enqueuePV enqueues the UID after which a PV is named, if it is.
func (c *Controller) enqueuePV(name string) {
	if uid, ours := uidOfPV(name); ours {
		c.enqueue(uid)
	}
}

// enqueueOwners enqueues the UIDs that a PV carries. A PV under another name may be a rival of
// their own PVs.
func (c *Controller) enqueueOwners(pv *corev1.PersistentVolume, enqueue func(types.UID)) {
	for _, uid := range pvs.Owners(pv) {
		if pv.DeletionTimestamp != nil || c.caches.PVs.Named(contract.PVName(uid)) != nil || len(c.caches.Jobs.By(cluster.ByUID, uid)) > 0 {
			enqueue(types.UID(uid))
		}
	}
}

// enqueueRivals enqueues the UIDs whose PVs have the volume source of a PV, and the policy Delete.
func (c *Controller) enqueueRivals(pv *corev1.PersistentVolume) {
	if !c.leading.Load() {
		return // while the caches are filled, looking for the rivals of each PV would take seconds
	}
	for _, other := range c.caches.PVsOfSource(pv) {
		if other.Name != pv.Name && other.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			c.enqueuePV(other.Name)
		}
	}
}

// enqueueBesideTrash enqueues the volumes that wait for their delete, and that it makes due that
// another one waits beside them, or is larger than it was. A new leader looks at each by itself.
func (c *Controller) enqueueBesideTrash(old, now *corev1.PersistentVolume) {
	if !c.leading.Load() || !pvs.IsTrash(now) {
		return
	}
	if old != nil && pvs.IsTrash(old) && pvs.TrashOf(old) == pvs.TrashOf(now) && pvs.BytesOf(old) >= pvs.BytesOf(now) {
		return
	}
	for _, due := range c.observer.DueBeside(now) {
		c.enqueuePV(due.Name)
	}
}

// jobChanged also has slots offered: a Job that has ended, or that no longer exists, may have freed
// one.
func (c *Controller) jobChanged(job *batchv1.Job) {
	exists := c.caches.Jobs.Named(job.Namespace+"/"+job.Name) != nil
	if exists {
		c.slots.Observe(job)
	} else {
		c.slots.Forget(job)
	}
	c.enqueueRevision(job.Annotations[contract.AnnRevision])
	c.enqueueRunOf(cluster.KeyOf(job), jobs.UIDs(job))
	if !exists {
		c.enqueueEach(jobs.UIDs(job))
	}
	if !exists || !job.DeletionTimestamp.IsZero() || job.Status.CompletionTime != nil || len(job.Status.Conditions) > 0 {
		c.slots.Freed(slots.KeyOfObject(job))
	}
}

func (c *Controller) enqueueEach(uids []string) {
	for _, uid := range uids {
		c.enqueue(types.UID(uid))
	}
}

// enqueueRunOf enqueues a Job and, later, its claims: the loop of the Job leaves to theirs at once
// what is theirs to do, and they find out when to look again.
func (c *Controller) enqueueRunOf(key string, uids []string) {
	c.enqueueRun(key)
	for _, uid := range uids {
		c.enqueueLater(types.UID(uid))
	}
}

// jobUpdated also enqueues the claims whose records have changed, and all of them when an
// administrator has, such as by an annotation.
func (c *Controller) jobUpdated(old, now *batchv1.Job) {
	if isOnlyConfirmed(old, now) { // the pod's own update follows
		c.enqueueRun(cluster.KeyOf(now))
		return
	}
	if isAnnotated(old, now) {
		c.enqueueEach(jobs.UIDs(now))
	}
	c.enqueueEach(jobs.ChangedRecords(old, now))
	passOn(c.jobChanged, old, now, hasJobMoved(old, now))
}

// isAnnotated reports whether two versions of a Job differ in an annotation that is not the
// dispatcher's own, or in the mark of deletion.
func isAnnotated(old, now *batchv1.Job) bool {
	was, is := maps.Clone(old.Annotations), maps.Clone(now.Annotations)
	for _, own := range []string{jobs.AnnConfirmed, jobs.AnnRecord} {
		delete(was, own)
		delete(is, own)
	}
	return !maps.Equal(was, is) || !old.DeletionTimestamp.Equal(now.DeletionTimestamp)
}

// isOnlyConfirmed reports whether two versions of a Job differ in nothing but the pod that is
// confirmed.
func isOnlyConfirmed(old, now *batchv1.Job) bool {
	was, is := maps.Clone(old.Annotations), maps.Clone(now.Annotations)
	if was[jobs.AnnConfirmed] == is[jobs.AnnConfirmed] {
		return false
	}
	delete(was, jobs.AnnConfirmed)
	delete(is, jobs.AnnConfirmed)
	return maps.Equal(was, is) && equality.Semantic.DeepEqual(old.Spec, now.Spec) && equality.Semantic.DeepEqual(old.Status, now.Status) &&
		slices.Equal(old.Finalizers, now.Finalizers) && old.DeletionTimestamp.Equal(now.DeletionTimestamp)
}

// podChanged also has slots offered: a pod whose containers have ended has freed one, and its Job
// may no longer exist.
func (c *Controller) podChanged(pod *corev1.Pod) {
	c.enqueueRunOf(pod.Namespace+"/"+pod.Labels[batchv1.JobNameLabel], jobs.UIDsOfPod(pod))
	if runs.IsOver(pod) || runs.HasContainerEnded(pod) || pod.DeletionTimestamp != nil {
		c.slots.Freed(slots.KeyOfObject(pod))
	}
}

func (c *Controller) classChanged(class *storagev1.StorageClass) {
	c.enqueueClass(config.ClassLabel(class.Name))
}

func (c *Controller) configChanged(cm *corev1.ConfigMap) {
	revision := config.Source{Namespace: cm.Namespace, Name: cm.Name}.RevisionName()
	c.enqueueRevisions(cm.Namespace, cluster.ByConfig, config.NameOfRevision(revision))
	for _, label := range c.caches.ClassesOf(cm, c.observer.Namespace) {
		c.enqueueRevisions(cm.Namespace, cluster.ByClass, label)
		c.enqueueClass(label)
	}
}

func (c *Controller) revisionChanged(stored *appsv1.ControllerRevision) {
	label := cluster.ClassOfRevision(stored)
	c.enqueueRevisions(stored.Namespace, cluster.ByClass, label)
	c.enqueueClass(label)
}

func (c *Controller) accountChanged(*corev1.ServiceAccount) { c.enqueueClasses() }

// enqueueClasses enqueues everything that may wait for something of any class.
func (c *Controller) enqueueClasses() {
	for _, label := range c.caches.ClassesInUse() {
		c.enqueueClass(label)
	}
}

// enqueueClass enqueues everything that may wait for something of a class: claims to be provisioned
// or resized, volumes to be deleted, and runs to be undone, whose claim may no longer exist and
// which have no PV.
func (c *Controller) enqueueClass(label string) {
	for _, claim := range c.caches.Claims.Moving(cluster.ByClass, label) {
		switch {
		case claim.Spec.VolumeName == "":
			c.enqueue(claim.UID)
		case pvs.WantsMore(claim):
			c.enqueuePV(claim.Spec.VolumeName)
		}
	}
	for _, pv := range c.caches.PVs.Moving(cluster.ByClass, label) {
		if pvs.IsReleased(pv) {
			c.pvChanged(pv)
		}
	}
	for _, job := range c.caches.Jobs.By(cluster.ByClass, label) {
		if runs.IsRecord(job) {
			c.enqueueEach(jobs.UIDs(job))
		}
	}
}

// nodeChanged enqueues everything that may wait for the node, or waits no more. Every node enqueues
// the volumes that name no single node. A kubelet may change labels of its node all the time, and
// any user may name the node in a claim of any class, so this is debounced, and for claims of ours
// alone.
func (c *Controller) nodeChanged(node *corev1.Node) {
	for _, name := range append(cluster.NamesOf(node), "") {
		claims, volumes, records := c.caches.WaitingForNode(name)
		for _, claim := range claims {
			if c.isOfOurClass(claim) {
				c.enqueueLater(claim.UID)
			}
		}
		for _, pv := range volumes {
			if uid, ours := uidOfPV(pv.Name); ours {
				c.enqueueLater(uid)
			}
		}
		for _, job := range records {
			for _, uid := range jobs.UIDs(job) {
				c.enqueueLater(types.UID(uid))
			}
		}
	}
}

// enqueueRevision enqueues a config revision when an object that names it has changed.
func (c *Controller) enqueueRevision(name string) {
	if strings.Contains(name, "/") {
		c.enqueueRevisionNamed(name)
	}
}

// enqueueRevisions enqueues the revisions that an index has under a key. The ConfigMap of some may
// have been created or deleted, or another revision of their class may be the newest now.
func (c *Controller) enqueueRevisions(namespace, index, key string) {
	for _, stored := range c.caches.Revisions.In(namespace).By(index, key) {
		c.enqueueRevisionNamed(stored.Namespace + "/" + stored.Name)
	}
}
