package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

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

func TestItem01FailuresAreRetriedWithDoublingPauses(t *testing.T) {
	inWorld(t, func(w *world) {
		fail := fails(75, "claim: the storage is restarting\n+ curl -u admin:s3cret")
		w.goldClass(script(slices.Repeat([]func(*run) ending{fail}, 11)...))
		w.start()
		w.claim("data")
		w.until("the first failure shows", time.Minute, func() bool { return w.now("data").Annotations[contract.AnnResult] == "failed" })
		w.mustShow(map[string]string{"attempts": "1", "exit-code": "75", "message": "the storage is restarting"})
		w.until("the claim is bound", 2*time.Hour, w.bound("data"))
		var want []time.Duration
		for _, s := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if got := w.pauses(contract.Provision); !slices.Equal(got, want) {
			w.t.Errorf("pauses %v\nwant   %v", got, want)
		}
		w.until("all records are released", time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustShow(map[string]string{"attempts": "12", "result": "succeeded", "exit-code": "0", "message": ""})
		w.mustTell("PersistentVolumeClaim/data", "ProvisioningFailed", 11, "the storage is restarting", "exit code 75", "next attempt in")
	})
}

func TestItem01ARefusedClaimIsNoRetryStorm(t *testing.T) {
	for code, most := range map[int32]int{65: 4, 64: 4, 78: 4, 73: 7, 77: 7} {
		inWorld(t, func(w *world) {
			w.goldClass(always(fails(code, "claim: RWX on a block device")))
			w.start()
			w.claim("data")
			w.run(30 * time.Minute)
			if n := len(w.made("")); n > most || n < 3 {
				w.t.Errorf("exit code %d: %d Jobs in 30 minutes, want 3 to %d", code, n, most)
			}
			w.mustTell("PersistentVolumeClaim/data", "ProvisioningFailed", len(w.ran(contract.Provision)), "RWX on a block device")
		})
	}
}

func TestItem01ARefusedClaimIsTriedAgainAtOnceWhenItsRequestChanges(t *testing.T) {
	inWorld(t, func(w *world) {
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
			w.t.Fatalf("%d Jobs before the claim changed", len(w.made("")))
		}
		edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		})
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		w.mustShow(map[string]string{"attempts": "1", "result": "succeeded"})
	})
}

func TestRule02AUserScribblingOnTheClaimChangesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
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
			w.t.Errorf("pauses %v\nwant   %v", got, want)
		}
		w.run(time.Second)
		w.mustShow(map[string]string{"result": "failed", "message": "not yet", "attempts": "10"})
	})
}

func TestItem01AfterMaxAttemptsTheClaimIsStalledUntilItChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(fails(75, "")), "max-attempts", "3")
		w.start()
		claim := w.claim("data")
		w.run(time.Hour)
		if n := len(w.made("")); n != 3 {
			w.t.Errorf("%d Jobs, want 3", n)
		}
		w.mustSay("PersistentVolumeClaim/data", "Stalled", "after 3", "max-attempts")
		if last := w.events.said("PersistentVolumeClaim/data", "ProvisioningFailed")[2]; strings.Contains(last.note, "next attempt") {
			w.t.Errorf("after the last attempt it says %q", last.note)
		}
		edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"again": "please"} })
		w.run(time.Hour)
		if n := len(w.made("")); n != 6 {
			w.t.Errorf("%d Jobs, want 3 more", n)
		}
	})
}
