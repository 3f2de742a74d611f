package controller_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// poke makes the dispatcher look at a claim again.
func (w *world) poke(name string) {
	edit(w, user, w.now(name), func(c *corev1.PersistentVolumeClaim) {
		annotate(c, "example.com/poke.kubernetes.io", time.Now().String())
	})
	synctest.Wait()
}

func TestRule02AJobThatTheCacheDoesNotShowYetIsNotLaunchedTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.server.hold("jobs", true)
		w.claim("data")
		w.until("the Job is there", time.Minute, func() bool { return len(w.made("")) == 1 })
		for range 5 {
			w.poke("data")
		}
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs", n)
		}
		w.server.hold("jobs", false)
		w.until("the claim is bound", time.Minute, w.bound("data"))
	})
}

func TestAPVThatTheCacheDoesNotShowYetIsASuccess(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.server.hold("persistentvolumes", true)
		w.claim("data")
		w.until("the run is told", time.Minute, func() bool { return len(w.events.said(onData, "")) == 2 })
		w.mustTell(onData, "ProvisioningSucceeded", 1)
		w.server.hold("persistentvolumes", false)
		w.until("its record is released", time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustShow(map[string]string{"result": "succeeded"})
	})
}

func TestRule07AClaimThatHasGoneUnseenGetsNoJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		w.server.hold("persistentvolumeclaims", true)
		drop(w, user, claim)
		w.run(time.Minute)
		if n := len(w.made(contract.Provision)); n != 1 {
			w.t.Errorf("%d provision Jobs, want 1", n)
		}
		w.server.hold("persistentvolumeclaims", false)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}

// The cache shows a PV as released; meanwhile an administrator has given it to the claim that is back.
func TestRule08APVThatWasHandedOnUnseenIsNotReclaimed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		w.server.hold("persistentvolumeclaims", true)
		w.server.hold("persistentvolumes", true)
		drop(w, user, claim)
		w.until("the PV is released", time.Minute, func() bool { return w.pvOf(claim).Status.Phase == corev1.VolumeReleased })
		again := w.claim("again")
		edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "again", again.UID
		})
		w.until("the other claim is bound", time.Minute, w.bound("again"))
		w.server.hold("persistentvolumes", false)
		w.server.hold("persistentvolumeclaims", false)
		w.run(time.Hour)
		w.mustRun("provision")
	})
}

func TestADispatcherWithNothingToDoAsksForNothing(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"a bound claim": func(w *world) { w.goldClass(works); w.start(); w.settled("data") },
		"a claim that waits for its config": func(w *world) {
			w.bare()
			w.start()
			w.claim("data")
		},
		"a retained volume": func(w *world) {
			w.goldClass(works)
			w.start()
			claim := w.settled("data")
			w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
			drop(w, user, claim)
		},
		"a PV deleted while it is bound": func(w *world) {
			w.goldClass(works)
			w.start()
			drop(w, admin, w.pvOf(w.settled("data")))
		},
		"a claim that is stalled": func(w *world) {
			w.goldClass(always(fails(75, "")), "max-attempts", "1")
			w.start()
			w.claim("data")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				prepare(w)
				w.run(2 * time.Hour)
				before, told := len(w.dispatcher.client.Actions()), len(w.events.said("", ""))
				w.run(24 * time.Hour)
				if n := len(w.dispatcher.client.Actions()) - before; n > 0 {
					w.t.Errorf("%d requests in a day: %v", n, w.dispatcher.client.Actions()[before:])
				}
				if n := len(w.events.said("", "")) - told; n > 0 {
					w.t.Errorf("%d events in a day", n)
				}
			})
		})
	}
}

func TestItem01AJobThatTheAPIServerRefusesIsToldAndTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1")
		w.server.refusing(func(_, _ string, obj object) error {
			if job, ok := obj.(*batchv1.Job); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, fmt.Errorf("exceeded quota: few"))
			}
			return nil
		})
		w.start()
		w.claim("data")
		w.claim("other")
		w.run(10 * time.Minute)
		w.mustHave(onData, "LaunchFailed", []string{"exceeded quota: few", "provision-"})
		if n := len(w.events.said(onData, "LaunchFailed")); n < 2 || n > 40 {
			w.t.Errorf("told %d times in 10 minutes", n)
		}
		w.server.refusing(nil)
		w.until("both are bound", 2*time.Minute, w.allBound)
	})
}
