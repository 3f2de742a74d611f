package controller

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

// measureBound measures a claim when it becomes bound, which nothing else in the dispatcher waits
// for. Only the leader counts, since a sum over all replicas must not count a claim twice. A claim
// that was bound while there was no leader is not counted.
func (c *Controller) measureBound(before, claim *corev1.PersistentVolumeClaim) {
	became := before.Status.Phase != corev1.ClaimBound && claim.Status.Phase == corev1.ClaimBound
	if !became || !c.leading.Load() {
		return
	}
	if pv := c.pvMadeFor(claim); pv != nil {
		c.countBound(claim, pv)
	}
}

// pvMadeFor returns the PV that was made for a claim, if the claim is bound to it, or nil. Other
// provisioners name their PVs in the same way.
func (c *Controller) pvMadeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := c.caches.PVs.Named(contract.PVName(string(claim.UID)))
	if pv == nil || claim.Spec.VolumeName != pv.Name || pv.Annotations[contract.AnnClaimUID] != string(claim.UID) {
		return nil
	}
	return pv
}

// countBound counts each phase of which the objects still show the beginning and the end. A claim names
// any class, and whoever writes a PV for it has it bound: only a class that exists makes series.
func (c *Controller) countBound(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	class := storagehelpers.GetPersistentVolumeClaimClass(claim)
	if c.caches.Classes.Named(class) == nil {
		class = ""
	}
	phase := func(name string, from, to metav1.Time) {
		if !from.IsZero() && !to.IsZero() {
			c.series.ObservePhase(class, name, to.Sub(from.Time))
		}
	}
	var created, started metav1.Time
	if job := c.provisionedBy(claim); job != nil {
		created, started = job.CreationTimestamp, runs.StartTime(c.caches.PodsOf(job))
	}
	phase(series.PhaseWait, claim.CreationTimestamp, created)
	phase(series.PhaseStart, created, started)
	phase(series.PhaseRun, started, pv.CreationTimestamp)
	phase(series.PhaseBind, pv.CreationTimestamp, metav1.NewTime(c.clock.Now()))
}

// provisionedBy returns the newest provision Job of a claim, or nil.
func (c *Controller) provisionedBy(claim *corev1.PersistentVolumeClaim) *batchv1.Job {
	var last *batchv1.Job
	number := 0
	for _, job := range c.caches.Jobs.By(cluster.ByUID, string(claim.UID)) {
		if r := runs.RecordOf(job, string(claim.UID)); r.Verb == contract.Provision && r.Number > number {
			last, number = job, r.Number
		}
	}
	return last
}

// backlog counts the UIDs that wait for a slot and the Jobs that have not ended.
func (c *Controller) backlog() series.Backlog {
	names := c.classNames()
	out := series.Backlog{
		Waiting: map[series.Waiting]int{}, Jobs: map[series.Jobs]int{}, Pending: map[series.Pending]int{}, Oldest: map[series.Pending]time.Time{}, Held: map[string]int{},
		Trash: map[string]series.Trash{},
	}
	for at, flows := range c.slots.Waiting() {
		for flow, n := range flows {
			out.Waiting[series.Waiting{Class: names[at.Label], Verb: flow.Verb}] += n
		}
	}
	for _, ns := range c.caches.Namespaces() {
		for _, label := range c.caches.Jobs.In(ns).Keys(cluster.ByUnfinished) {
			for _, job := range c.caches.Jobs.In(ns).By(cluster.ByUnfinished, label) {
				if !c.slots.HoldsSlot(job) {
					continue
				}
				r := runs.RecordOf(job, job.Labels[contract.LabelClaimUID])
				running := c.caches.StuckOf(job, c.clock.Now()).Cause() == ""
				out.Jobs[series.Jobs{Class: names[label], Verb: r.Verb, Undo: r.IsUndo(), Running: running}]++
			}
		}
	}
	if c.leading.Load() { // a sum over all replicas must not count a claim twice
		c.countPending(&out)
		c.countHeld(&out, names)
		c.countTrash(&out, names)
	}
	return out
}

// classNames returns the names of classes by their labels. One that no longer exists has the name that
// the records of its Jobs have, as in the series of runs: a rule compares those with what waits.
func (c *Controller) classNames() map[string]string {
	names := map[string]string{}
	for _, class := range c.caches.Classes.All() {
		names[config.ClassLabel(class.Name)] = class.Name
	}
	for _, job := range c.caches.Jobs.All() {
		label := job.Labels[config.LabelClass]
		if _, known := names[label]; known {
			continue
		}
		if class := runs.RecordOf(job, job.Labels[contract.LabelClaimUID]).Class; config.ClassLabel(class) == label {
			names[label] = class
		}
	}
	return names
}

// countPending counts the claims that wait for a volume. Why they do is what the caches show without
// an observation of each: 10,000 of them would take a second at every scrape.
func (c *Controller) countPending(out *series.Backlog) {
	present := map[string]resolve.Resolved{} // by the name of the class
	for _, class := range c.caches.Classes.All() {
		if class.Provisioner != c.opts.Provisioner {
			continue
		}
		present[class.Name] = c.observer.AtPresent(class)
	}
	for _, label := range c.caches.Claims.Keys(cluster.ByClass) {
		for _, claim := range c.caches.Claims.Moving(cluster.ByClass, label) {
			c.countIfPending(out, claim, present)
		}
	}
}

// countIfPending counts a claim if it waits for a volume. present has the configs of classes by their
// names.
func (c *Controller) countIfPending(
	out *series.Backlog, claim *corev1.PersistentVolumeClaim, present map[string]resolve.Resolved,
) {
	if claim.Spec.VolumeName != "" || !c.observer.IsPending(claim) {
		return
	}
	class := storagehelpers.GetPersistentVolumeClaimClass(claim)
	why := series.Why{Problem: present[class].WhyNotServed(claim)}
	if job := c.provisionedBy(claim); job != nil {
		c.readWhy(&why, job, string(claim.UID))
	}
	out.AddPending(class, claim.CreationTimestamp.Time, why)
}

// readWhy completes why a claim is pending by its newest provision Job.
func (c *Controller) readWhy(why *series.Why, job *batchv1.Job, uid string) {
	if recorded := runs.RecordOf(job, uid).Recorded; recorded != nil {
		why.Verdict = recorded.Verdict
		return
	}
	why.Running, why.Stuck = true, c.caches.StuckOf(job, c.clock.Now()).Cause() != ""
}

// countHeld counts the Jobs that have ended and are still records, by the names of classes.
func (c *Controller) countHeld(out *series.Backlog, names map[string]string) {
	for _, job := range c.caches.Jobs.All() {
		if runs.IsFinished(job) && runs.IsRecord(job) {
			out.Held[names[job.Labels[config.LabelClass]]]++
		}
	}
}

// countTrash counts the volumes that wait for their delete, by the names of classes.
func (c *Controller) countTrash(out *series.Backlog, names map[string]string) {
	for _, key := range c.caches.PVs.Keys(cluster.ByTrash) {
		if strings.Contains(key, "/") {
			continue // of a namespace
		}
		if trash := c.observer.Kept(key); trash.Volumes > 0 {
			of := out.Trash[names[key]]
			out.Trash[names[key]] = series.Trash{Volumes: of.Volumes + trash.Volumes, Bytes: of.Bytes + trash.Bytes}
		}
	}
}
