package controller

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// The phases of a claim on its way to be bound. One ends where the next begins.
const (
	phaseWait  = "wait"  // from the claim's creation to that of the Job that served it: its turn, earlier attempts, its node's choice
	phaseStart = "start" // until the container runs: the scheduler, the image's pull
	phaseRun   = "run"   // until the PV is there
	phaseBind  = "bind"  // until the claim is bound
)

// claimUpdated measures a claim when it becomes bound, which nothing else in the dispatcher waits for. Only
// the leader counts: a sum over all replicas must not count a claim twice. What was bound while nobody led
// is not counted at all.
func (c *Controller) claimUpdated(old, now any) {
	before, claim := old.(*corev1.PersistentVolumeClaim), now.(*corev1.PersistentVolumeClaim)
	became := before.Status.Phase != corev1.ClaimBound && claim.Status.Phase == corev1.ClaimBound
	if !became || !c.leading.Load() {
		return
	}
	if pv := c.madeFor(claim); pv != nil {
		c.countBound(claim, pv)
	}
}

// madeFor is the PV that was made for a claim, if it is bound to that, or nil. Other provisioners name
// theirs in the same way.
func (c *Controller) madeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	obj, found, err := c.caches.volumes.GetByKey(contract.PVName(string(claim.UID)))
	if err != nil || !found {
		return nil
	}
	pv := obj.(*corev1.PersistentVolume)
	if claim.Spec.VolumeName != pv.Name || pv.Annotations[contract.AnnClaimUID] != string(claim.UID) {
		return nil
	}
	return pv
}

// countBound takes each phase into the series whose beginning and end the objects still tell.
func (c *Controller) countBound(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	phase := func(name string, from, to metav1.Time) {
		if !from.IsZero() && !to.IsZero() {
			observeSeconds(c.series.bound.WithLabelValues(className(claim), name), to.Sub(from.Time))
		}
	}
	var made, started metav1.Time
	if job := c.servedBy(claim); job != nil {
		made, started = job.CreationTimestamp, c.startOf(job)
	}
	phase(phaseWait, claim.CreationTimestamp, made)
	phase(phaseStart, made, started)
	phase(phaseRun, started, pv.CreationTimestamp)
	phase(phaseBind, pv.CreationTimestamp, metav1.NewTime(c.clock.Now()))
}

// servedBy is the newest provision Job of a claim, or nil.
func (c *Controller) servedBy(claim *corev1.PersistentVolumeClaim) *batchv1.Job {
	var last *batchv1.Job
	number := 0
	for _, s := range c.caches.spaces {
		found, _ := s.jobs.ByIndex(byUID, string(claim.UID))
		for _, obj := range found {
			job := obj.(*batchv1.Job)
			if r := runs.RecordOf(job, string(claim.UID)); r.Verb == contract.Provision && r.Number > number {
				last, number = job, r.Number
			}
		}
	}
	return last
}

// startOf is when a Job's container began to run, zero where no pod tells.
func (c *Controller) startOf(job *batchv1.Job) metav1.Time {
	pods, err := c.caches.podsOf(job)
	if err != nil {
		return metav1.Time{}
	}
	return runs.Started(pods)
}
