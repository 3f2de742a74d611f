package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestAClaimIsBoundByOneJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("its record is released", time.Minute, func() bool { return len(w.records()) == 0 })
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs, want 1", n)
		}
		w.mustShow(map[string]string{"result": "succeeded", "attempts": "1", "exit-code": "0", "message": ""})
		if pv := w.pvOf(claim); !slices.Contains(pv.Finalizers, contract.FinalizerStorage) || pv.Annotations[contract.AnnRevision] == "" {
			w.t.Errorf("the PV has the finalizers %v and the annotations %v", pv.Finalizers, pv.Annotations)
		}
		w.mustTell("PersistentVolumeClaim/data", "Provisioning", 1, "attempt 1", gold)
		w.mustTell("PersistentVolumeClaim/data", "ProvisioningSucceeded", 1, w.pvOf(claim).Name)
		w.until("the Job expires", 6*time.Minute, func() bool { return len(every[*batchv1.Job](w)) == 0 })
		if len(every[*corev1.Pod](w)) != 0 {
			w.t.Error("its pod is left")
		}
	})
}

func TestItem01OutputThatIsNotForTheUserStaysWithTheJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(fails(75, "claim: no such type\n+ curl -u admin:s3cret")))
		w.start()
		w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		for _, e := range w.events.said("", "") {
			if strings.Contains(e.note, "s3cret") && !strings.HasPrefix(e.about, "Job/") {
				w.t.Errorf("told about %s: %s", e.about, e.note)
			}
		}
		for key, value := range w.now("data").Annotations {
			if strings.Contains(value, "s3cret") {
				w.t.Errorf("%s: %s", key, value)
			}
		}
		w.mustTell(w.jobName(0), "ContainerOutput", 1, "s3cret")
	})
}

// jobName is how events call the Job that was created as number i.
func (w *world) jobName(i int) string { return "Job/" + w.made("")[i].name }

func TestItem02ExitZeroWithoutAPVIsAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(fails(0, "claim: all is well")))
		w.start()
		w.claim("data")
		w.until("the first run is told", time.Minute, func() bool { return len(w.events.said("", "ProvisioningFailed")) > 0 })
		w.mustTell("PersistentVolumeClaim/data", "ProvisioningFailed", 1, "exit code 0, but it wrote no PersistentVolume pvc-")
		w.until("it shows", time.Second, func() bool { return w.now("data").Annotations[contract.AnnResult] == "failed" })
		w.until("the claim is bound", time.Minute, w.bound("data"))
		if n := len(w.made("")); n != 2 {
			w.t.Errorf("%d Jobs, want 2", n)
		}
	})
}

func TestItem02APVAndANonZeroExitIsASuccessWithAWarning(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(func(r *run) ending { works(r); return ending{1, "cannot notify anybody"} }))
		w.start()
		w.claim("data")
		w.until("it is recorded", time.Minute, func() bool { return w.bound("data")() && len(w.records()) == 0 })
		w.run(10 * time.Minute)
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs, want 1", n)
		}
		w.mustShow(map[string]string{"result": "succeeded", "exit-code": "1"})
		w.mustTell("PersistentVolumeClaim/data", "ProvisioningSucceeded", 1, "although", "exit code 1")
	})
}

func TestItem02APVWithoutTheClaimsUIDIsNoSuccess(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"no UID":      func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) },
		"another's":   func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = "another" },
		"no claimRef": func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(always(func(r *run) ending { r.make(); r.write(spoil); return ending{} }))
				w.start()
				w.claim("data")
				w.run(time.Minute)
				w.mustShow(map[string]string{"result": "failed"})
				w.mustTell("PersistentVolumeClaim/data", "ProvisioningSucceeded", 0)
				if len(w.records()) == 0 {
					w.t.Error("the record was let go")
				}
			})
		})
	}
}

func TestItem02ARunThatNeverEndsIsEndedByItsTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "timeout", "2m")
		w.images[gold] = image{does: works, takes: 100 * time.Hour}
		w.start()
		w.claim("data")
		w.until("the second Job", 5*time.Minute, func() bool { return len(w.made("")) == 2 })
		w.mustTell("PersistentVolumeClaim/data", "ProvisioningFailed", 1, "DeadlineExceeded", "attempt 1")
		w.images[gold] = image{does: works}
		w.until("the claim is bound", time.Minute, w.bound("data"))
	})
}

func TestItem01WhatOthersDoToARunIsNotCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-attempts", "1")
		w.images[gold] = image{does: works, takes: time.Minute}
		w.start()
		w.claim("data")
		for range 3 {
			w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
			n := len(w.made(""))
			drop(w, admin, w.running()[0])
			w.until("the next Job", time.Minute, func() bool { return len(w.made("")) == n+1 })
		}
		w.until("the claim is bound", 2*time.Minute, w.bound("data"))
		w.mustShow(map[string]string{"attempts": "1"})
		if got := w.pauses(contract.Provision); !slices.Equal(got, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}) {
			w.t.Errorf("pauses %v, want 10 s", got)
		}
	})
}

// running are the pods that run.
func (w *world) running() []*corev1.Pod {
	return slices.DeleteFunc(every[*corev1.Pod](w), func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
}

func TestRule04ADrainedPodIsFollowedByAnotherJobUncounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: works, takes: time.Minute}
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		edit(w, admin, w.running()[0], func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		})
		drop(w, admin, w.running()[0])
		w.until("the claim is bound", 3*time.Minute, w.bound("data"))
		if n := len(w.made("")); n != 2 {
			w.t.Errorf("%d Jobs, want 2", n)
		}
		w.mustShow(map[string]string{"attempts": "1"})
	})
}

func TestRule05AJobDeletedByHandIsWaitedForWhileItsPodRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: script(fails(75, "")), takes: 5 * time.Minute}
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, admin, every[*batchv1.Job](w)[0])
		w.run(4 * time.Minute)
		if n := len(w.made("")); n != 1 {
			w.t.Fatalf("%d Jobs while the pod of the first runs", n)
		}
		w.until("the claim is bound", 10*time.Minute, w.bound("data"))
		w.until("the deleted Job goes", time.Minute, func() bool { return len(w.records()) == 0 })
		if n := len(w.made("")); n != 2 {
			w.t.Errorf("%d Jobs, want 2", n)
		}
	})
}

func TestRule05AJobDeletedByHandMayStillSucceed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, admin, every[*batchv1.Job](w)[0])
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("the deleted Job goes", time.Minute, func() bool { return len(every[*batchv1.Job](w)) == 0 })
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs, want 1", n)
		}
	})
}
