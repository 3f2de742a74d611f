package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

func TestAClaimIsBoundByOneJob(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(works)
		w.start()
		claim := w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("its record is released", time.Minute, func() bool { return len(w.records()) == 0 })
		if n := len(w.made("")); n != 1 {
			t.Errorf("%d Jobs, want 1", n)
		}
		mustShow(t, w, "data", map[string]string{"result": "succeeded", "attempts": "1", "exit-code": "0", "message": ""})
		if pv := w.pvOf(claim); !slices.Contains(pv.Finalizers, contract.FinalizerStorage) || pv.Annotations[contract.AnnRevision] == "" {
			t.Errorf("the PV has the finalizers %v and the annotations %v", pv.Finalizers, pv.Annotations)
		}
		mustTell(t, w, "PersistentVolumeClaim/data", "Provisioning", 1, "attempt 1", gold)
		mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningSucceeded", 1, w.pvOf(claim).Name)
		w.until("the Job expires", 6*time.Minute, func() bool { return len(every[*batchv1.Job](w)) == 0 })
		if len(every[*corev1.Pod](w)) != 0 {
			t.Error("its pod is left")
		}
	})
}

// mustShow checks the claim's annotations of ours.
func mustShow(t *testing.T, w *world, name string, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := w.now(name).Annotations[contract.Domain+key]; got != value {
			t.Errorf("the claim shows %s: %q, want %q", key, got, value)
		}
	}
}

// mustTell checks how often an event was told, and that it has these words.
func mustTell(t *testing.T, w *world, about, reason string, times int, words ...string) {
	t.Helper()
	if n := len(w.events.said(about, reason)); n != times {
		t.Errorf("%s about %s was told %d times, want %d", reason, about, n, times)
	}
	mustHave(t, w, about, reason, words)
}

// mustSay checks that an event was told, once or a few times over: what stands in the way of a claim is
// told again whenever the claim is looked at.
func mustSay(t *testing.T, w *world, about, reason string, words ...string) {
	t.Helper()
	if n := len(w.events.said(about, reason)); n < 1 || n > 5 {
		t.Errorf("%s about %s was told %d times, want one or a few", reason, about, n)
	}
	mustHave(t, w, about, reason, words)
}

func mustHave(t *testing.T, w *world, about, reason string, words []string) {
	t.Helper()
	for _, e := range w.events.said(about, reason) {
		for _, word := range words {
			if !strings.Contains(e.note, word) {
				t.Errorf("%s about %s says %q, which lacks %q", reason, about, e.note, word)
			}
		}
	}
}

// pauses are the times from the end of each Job of a verb to the creation of the next, without the few
// milliseconds by which the dispatcher wakes late.
func (w *world) pauses(verb contract.Verb) []time.Duration {
	var out []time.Duration
	made := w.made(verb)
	for i := range len(made) - 1 {
		for _, c := range w.server.history() {
			job, isJob := c.now.(*batchv1.Job)
			if isJob && c.place == made[i].place && ended(job) != nil {
				out = append(out, made[i+1].at.Sub(ended(job).LastTransitionTime.Time).Truncate(100*time.Millisecond))
				break
			}
		}
	}
	return out
}

func TestFailuresAreRetriedWithDoublingPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fail := fails(75, "claim: the storage is restarting\n+ curl -u admin:s3cret")
		w.goldClass(script(slices.Repeat([]func(*run) ending{fail}, 11)...))
		w.start()
		w.claim("data")
		w.until("the first failure shows", time.Minute, func() bool { return w.now("data").Annotations[contract.AnnResult] == "failed" })
		mustShow(t, w, "data", map[string]string{"attempts": "1", "exit-code": "75", "message": "the storage is restarting"})
		w.until("the claim is bound", 2*time.Hour, w.bound("data"))
		var want []time.Duration
		for _, s := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if got := w.pauses(contract.Provision); !slices.Equal(got, want) {
			t.Errorf("pauses %v\nwant   %v", got, want)
		}
		w.until("all records are released", time.Minute, func() bool { return len(w.records()) == 0 })
		mustShow(t, w, "data", map[string]string{"attempts": "12", "result": "succeeded", "exit-code": "0", "message": ""})
		mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningFailed", 11, "the storage is restarting", "exit code 75", "next attempt in")
	})
}

func TestOutputThatIsNotForTheUserStaysWithTheJob(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(script(fails(75, "claim: no such type\n+ curl -u admin:s3cret")))
		w.start()
		w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		for _, e := range w.events.said("", "") {
			if strings.Contains(e.note, "s3cret") && !strings.HasPrefix(e.about, "Job/") {
				t.Errorf("told about %s: %s", e.about, e.note)
			}
		}
		for key, value := range w.now("data").Annotations {
			if strings.Contains(value, "s3cret") {
				t.Errorf("%s: %s", key, value)
			}
		}
		mustTell(t, w, w.jobName(0), "ContainerOutput", 1, "s3cret")
	})
}

// jobName is how events call the Job that was created as number i.
func (w *world) jobName(i int) string { return "Job/" + w.made("")[i].name }

func TestARefusedClaimIsNoRetryStorm(t *testing.T) {
	for code, most := range map[int32]int{65: 4, 64: 4, 78: 4, 73: 7, 77: 7} {
		inWorld(t, func(t *testing.T, w *world) {
			w.goldClass(always(fails(code, "claim: RWX on a block device")))
			w.start()
			w.claim("data")
			w.run(30 * time.Minute)
			if n := len(w.made("")); n > most || n < 3 {
				t.Errorf("exit code %d: %d Jobs in 30 minutes, want 3 to %d", code, n, most)
			}
			mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningFailed", len(w.ran(contract.Provision)), "RWX on a block device")
		})
	}
}

func TestARefusedClaimIsTriedAgainAtOnceWhenItsRequestChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(func(r *run) ending {
			if r.verb == contract.Provision && r.request.Size > 1<<30 {
				return ending{65, "claim: too large"}
			}
			return works(r)
		})
		w.start()
		claim := w.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		w.run(3 * time.Minute)
		if len(w.made("")) != 1 {
			t.Fatalf("%d Jobs before the claim changed", len(w.made("")))
		}
		edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		})
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		mustShow(t, w, "data", map[string]string{"attempts": "1", "result": "succeeded"})
	})
}

func TestExitZeroWithoutAPVIsAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(script(fails(0, "claim: all is well")))
		w.start()
		w.claim("data")
		w.until("the first run is told", time.Minute, func() bool { return len(w.events.said("", "ProvisioningFailed")) > 0 })
		mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningFailed", 1, "exit code 0, but it wrote no PersistentVolume pvc-")
		w.until("it shows", time.Second, func() bool { return w.now("data").Annotations[contract.AnnResult] == "failed" })
		w.until("the claim is bound", time.Minute, w.bound("data"))
		if n := len(w.made("")); n != 2 {
			t.Errorf("%d Jobs, want 2", n)
		}
	})
}

func TestAPVAndANonZeroExitIsASuccessWithAWarning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(always(func(r *run) ending { works(r); return ending{1, "cannot notify anybody"} }))
		w.start()
		w.claim("data")
		w.until("it is recorded", time.Minute, func() bool { return w.bound("data")() && len(w.records()) == 0 })
		w.run(10 * time.Minute)
		if n := len(w.made("")); n != 1 {
			t.Errorf("%d Jobs, want 1", n)
		}
		mustShow(t, w, "data", map[string]string{"result": "succeeded", "exit-code": "1"})
		mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningSucceeded", 1, "although", "exit code 1")
	})
}

func TestAPVWithoutTheClaimsUIDIsNoSuccess(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"no UID":      func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) },
		"another's":   func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = "another" },
		"no claimRef": func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.goldClass(always(func(r *run) ending { r.make(); r.write(spoil); return ending{} }))
				w.start()
				w.claim("data")
				w.run(time.Minute)
				mustShow(t, w, "data", map[string]string{"result": "failed"})
				mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningSucceeded", 0)
				if len(w.records()) == 0 {
					t.Error("the record was let go")
				}
			})
		})
	}
}

func TestARunThatNeverEndsIsEndedByItsTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(works, "timeout", "2m")
		w.images[gold] = image{does: works, takes: 100 * time.Hour}
		w.start()
		w.claim("data")
		w.until("the second Job", 3*time.Minute, func() bool { return len(w.made("")) == 2 })
		mustTell(t, w, "PersistentVolumeClaim/data", "ProvisioningFailed", 1, "DeadlineExceeded", "attempt 1")
		w.images[gold] = image{does: works}
		w.until("the claim is bound", time.Minute, w.bound("data"))
	})
}

func TestWhatOthersDoToARunIsNotCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
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
		mustShow(t, w, "data", map[string]string{"attempts": "1"})
		if got := w.pauses(contract.Provision); !slices.Equal(got, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}) {
			t.Errorf("pauses %v, want 10 s", got)
		}
	})
}

// running are the pods that run.
func (w *world) running() []*corev1.Pod {
	return slices.DeleteFunc(every[*corev1.Pod](w), func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
}

func TestADrainedPodIsReplacedWithinItsJob(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
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
		if n := len(w.made("")); n != 1 {
			t.Errorf("%d Jobs, want 1", n)
		}
	})
}

func TestAJobDeletedByHandIsWaitedForWhileItsPodRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: script(fails(75, "")), takes: 5 * time.Minute}
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, admin, every[*batchv1.Job](w)[0])
		w.run(4 * time.Minute)
		if n := len(w.made("")); n != 1 {
			t.Fatalf("%d Jobs while the pod of the first runs", n)
		}
		w.until("the claim is bound", 10*time.Minute, w.bound("data"))
		w.until("the deleted Job goes", time.Minute, func() bool { return len(w.records()) == 0 })
		if n := len(w.made("")); n != 2 {
			t.Errorf("%d Jobs, want 2", n)
		}
	})
}

func TestAJobDeletedByHandMayStillSucceed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(works)
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, admin, every[*batchv1.Job](w)[0])
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("the deleted Job goes", time.Minute, func() bool { return len(every[*batchv1.Job](w)) == 0 })
		if n := len(w.made("")); n != 1 {
			t.Errorf("%d Jobs, want 1", n)
		}
	})
}

func TestAUserScribblingOnTheClaimChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(always(fails(75, "claim: not yet")))
		w.start()
		claim := w.claim("data")
		for i := range 20 {
			w.run(30 * time.Second)
			edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) {
				annotate(c, contract.AnnAttempts, "0")
				annotate(c, contract.AnnResult, "succeeded")
				annotate(c, contract.AnnProvisionTS, "1970-01-01T00:00:00Z")
				annotate(c, contract.AnnMessage, strings.Repeat("x", i))
			})
		}
		var want []time.Duration
		for _, s := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if got := w.pauses(contract.Provision); !slices.Equal(got, want) {
			t.Errorf("pauses %v\nwant   %v", got, want)
		}
		w.run(time.Second)
		mustShow(t, w, "data", map[string]string{"result": "failed", "message": "not yet", "attempts": "10"})
	})
}

func TestAfterMaxAttemptsTheClaimIsStalledUntilItChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(always(fails(75, "")), "max-attempts", "3")
		w.start()
		claim := w.claim("data")
		w.run(time.Hour)
		if n := len(w.made("")); n != 3 {
			t.Errorf("%d Jobs, want 3", n)
		}
		mustSay(t, w, "PersistentVolumeClaim/data", "Stalled", "after 3", "max-attempts")
		edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"again": "please"} })
		w.run(time.Hour)
		if n := len(w.made("")); n != 6 {
			t.Errorf("%d Jobs, want 3 more", n)
		}
	})
}
