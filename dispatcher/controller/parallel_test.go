package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// most is the highest number of Jobs that were unfinished at a time, over the whole log.
func (w *world) most() int {
	live, most := map[string]bool{}, 0
	for _, c := range w.server.history() {
		if c.resource != "jobs" {
			continue
		}
		job, exists := c.now.(*batchv1.Job)
		live[c.name] = exists && ended(job) == nil
		n := 0
		for _, l := range live {
			if l {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestItem11NoMoreJobsThanMaxParallelRunAtATime(t *testing.T) {
	const claims, parallel = 30, 4
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.goldClass(works, "max-parallel", fmt.Sprint(parallel))
		w.start()
		for i := range claims {
			w.claim(fmt.Sprintf("data-%d", i))
		}
		w.until("all are bound", time.Minute, func() bool { return len(w.storage) == claims && w.allBound() })
		if got := w.most(); got != parallel {
			w.t.Errorf("%d Jobs at a time, want %d", got, parallel)
		}
		if n := len(w.made("")); n != claims {
			w.t.Errorf("%d Jobs, want %d", n, claims)
		}
		for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
			drop(w, user, claim)
		}
		w.until("nothing is left", time.Minute, w.empty)
		if got := w.most(); got != parallel {
			w.t.Errorf("%d Jobs at a time, want %d", got, parallel)
		}
	})
}

func (w *world) allBound() bool {
	for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
		if claim.Spec.VolumeName == "" {
			return false
		}
	}
	return true
}

func TestAbandonedClaimsAreUndoneWithinMaxParallelToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.goldClass(always(halfway(65)), "max-parallel", "2")
		w.start()
		for i := range 10 {
			w.claim(fmt.Sprintf("data-%d", i))
		}
		w.until("all failed", time.Minute, func() bool { return len(w.runs) == 10 })
		w.run(time.Second)
		for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
			drop(w, user, claim)
		}
		w.until("nothing is left", time.Minute, w.empty)
		if got := w.most(); got != 2 {
			w.t.Errorf("%d Jobs at a time, want 2", got)
		}
	})
}

func TestOneClassDoesNotHoldUpAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1")
		w.class("silver", corev1.PersistentVolumeReclaimDelete)
		w.config("silver", "silver", "image", newer)
		w.images[gold] = image{does: works, takes: 5 * time.Minute}
		w.images[newer] = image{does: works}
		w.start()
		w.claim("slow")
		w.claim("waits")
		w.claim("quick", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("silver") })
		w.until("the other class's claim is bound", 5*time.Second, w.bound("quick"))
		if n := len(w.made(contract.Provision)); n != 2 {
			w.t.Errorf("%d Jobs, want one of each class", n)
		}
		w.until("all are bound", time.Hour, w.allBound)
	})
}

func TestItem11AJobThatCannotStartGivesItsSlotToOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1")
		w.start()
		w.stuck["data"] = true
		w.claim("data")
		w.until("its Job is there", time.Minute, func() bool { return len(w.made("")) == 1 })
		w.claim("other")
		w.until("the other is bound", time.Minute, w.bound("other"))
		w.stuck["data"] = false
		w.until("both are bound", time.Minute, w.allBound)
	})
}
