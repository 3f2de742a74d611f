package controller_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// pauses are the times from the end of each Job of a verb to the creation of the next, without the
// few milliseconds by which the dispatcher is late.
func (w *world) pauses(verb contract.Verb) []time.Duration {
	var out []time.Duration
	made := w.CreatedJobs(verb)
	for i := range len(made) - 1 {
		for _, c := range w.Server.History() {
			job, isJob := c.Now.(*batchv1.Job)
			if isJob && c.Key == made[i].Key && fakecluster.FinishedCondition(job) != nil {
				out = append(out, made[i+1].At.Sub(fakecluster.FinishedCondition(job).LastTransitionTime.Time).Truncate(100*time.Millisecond))
				break
			}
		}
	}
	return out
}

func TestFailuresAreRetriedWithDoublingPauses(t *testing.T) {
	inWorld(t, func(w *world) {
		fail := fakecluster.Fails(75, "claim: the storage is restarting\n+ curl -u admin:s3cret")
		w.SetUpGold(fakecluster.Script(slices.Repeat([]func(*fakecluster.Run) fakecluster.Exit{fail}, 11)...))
		w.Start()
		w.CreateClaim("data")
		w.Until("the first failure shows", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "failed" })
		w.MustShow(map[string]string{"attempts": "1", "exit-code": "75", "message": "the storage is restarting"})
		w.Until("the claim is bound", 2*time.Hour, w.IsBound("data"))
		var want []time.Duration
		for _, s := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if got := w.pauses(contract.Provision); !slices.Equal(got, want) {
			w.T.Errorf("pauses %v\nwant   %v", got, want)
		}
		w.Until("all records are released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustShow(map[string]string{"attempts": "12", "result": "succeeded", "exit-code": "0", "message": ""})
		w.MustEmit("PersistentVolumeClaim/data", "ProvisioningFailed", 11, "the storage is restarting", "exit code 75", "next attempt in")
	})
}

func TestARefusedClaimIsNoRetryStorm(t *testing.T) {
	for code, most := range map[int32]int{65: 4, 64: 4, 78: 4, 73: 7, 77: 7} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Always(fakecluster.Fails(code, "claim: RWX on a block device")))
			w.Start()
			w.CreateClaim("data")
			w.Advance(30 * time.Minute)
			if n := len(w.CreatedJobs("")); n > most || n < 3 {
				w.T.Errorf("exit code %d: %d Jobs in 30 minutes, want 3 to %d", code, n, most)
			}
			w.MustEmit("PersistentVolumeClaim/data", "ProvisioningFailed", len(w.RunsOf(contract.Provision)), "RWX on a block device")
		})
	}
}

// A corrected ConfigMap is seen, and a corrected Secret is not: the event has the command for that,
// and is not cut before it.
func TestTheEventOfARefusedConfigEndsWithItsRemedy(t *testing.T) {
	for _, code := range []int32{64, 77, 78} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Always(fakecluster.Fails(code, "claim: "+strings.Repeat("x", 500))))
			w.Start()
			w.CreateClaim("data")
			w.Advance(5 * time.Second)
			job := w.CreatedJobs("")[0].Now.GetName()
			w.MustEmit("PersistentVolumeClaim/data", "ProvisioningFailed", 1,
				fmt.Sprintf("(exit code %d)", code),
				". Remedy: an administrator corrects the ConfigMap, which is used at once,"+
					" or the Secret, and then: kubectl -n "+fakecluster.ConfigNamespace+
					" annotate --overwrite job "+job+" "+jobs.AnnRetry+"=now")
		})
	}
}

func TestARefusedClaimIsTriedAgainSoonWhenItsRequestChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Provision && r.Request.Size > 1<<30 {
				return fakecluster.Exit{Code: 65, Message: "claim: too large"}
			}
			return fakecluster.Works(r)
		})
		w.Start()
		claim := w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		w.Advance(3 * time.Minute)
		if len(w.CreatedJobs("")) != 1 {
			w.T.Fatalf("%d Jobs before the claim changed", len(w.CreatedJobs("")))
		}
		fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		})
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
		w.MustShow(map[string]string{"attempts": "1", "result": "succeeded"})
	})
}

func TestOwnAnswerIsNotReadFromTheClaimsAnnotations(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(75, "claim: not yet")))
		w.Start()
		claim := w.CreateClaim("data")
		for i := range 20 {
			w.Advance(30 * time.Second)
			fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
				fakecluster.Annotate(c, contract.AnnAttempts, "0")
				fakecluster.Annotate(c, contract.AnnResult, "succeeded")
				fakecluster.Annotate(c, contract.AnnProvisionTS, "1970-01-01T00:00:00Z")
				fakecluster.Annotate(c, contract.AnnMessage, strings.Repeat("x", i))
			})
		}
		var want []time.Duration
		for _, s := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if got := w.pauses(contract.Provision); !slices.Equal(got, want) {
			w.T.Errorf("pauses %v\nwant   %v", got, want)
		}
		w.Advance(time.Second)
		w.MustShow(map[string]string{"result": "failed", "message": "not yet", "attempts": "10"})
	})
}

func TestAfterMaxAttemptsTheClaimIsStalledUntilItChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(75, "")), "max-attempts", "3", "request-keys", "again")
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Hour)
		if n := len(w.CreatedJobs("")); n != 3 {
			w.T.Errorf("%d Jobs, want 3", n)
		}
		w.MustEmitSome("PersistentVolumeClaim/data", "Stalled", "after 3", "max-attempts")
		if last := w.Events.About("PersistentVolumeClaim/data", "ProvisioningFailed")[2]; strings.Contains(last.Note, "next attempt") {
			w.T.Errorf("after the last attempt it says %q", last.Note)
		}
		fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"other": "label"} })
		w.Advance(time.Hour)
		if n := len(w.CreatedJobs("")); n != 3 {
			w.T.Errorf("%d Jobs after a label changed that is no part of the request, want 3", n)
		}
		fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"again": "please"} })
		w.Advance(time.Hour)
		if n := len(w.CreatedJobs(contract.Provision)); n != 6 {
			w.T.Errorf("%d Jobs, want 3 more", n)
		}
	})
}

// An operator writes its heartbeat on the claim every ten seconds: on an annotation of its own, or
// on one that the config makes part of the request.
func TestAnAnnotationThatAlwaysChangesIsNoRetryStorm(t *testing.T) {
	for keys, most := range map[string]int{"": 3, "operator.example.com/last-seen": 21} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Always(fakecluster.Fails(65, "claim: no")), "max-attempts", "3", "request-keys", keys)
			w.Start()
			claim := w.CreateClaim("data")
			for i := range 360 {
				w.Advance(10 * time.Second)
				fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
					fakecluster.Annotate(c, "operator.example.com/last-seen", strconv.Itoa(i))
				})
			}
			if n := len(w.CreatedJobs(contract.Provision)); n > most || n < 3 { // each new request undoes the last run first
				w.T.Errorf("request-keys %q: %d runs in an hour, want 3 to %d", keys, n, most)
			}
		})
	}
}

// The hash on the Job of an older dispatcher covers something else.
func TestAnUpgradeIsNoNewRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(65, "claim: no")))
		w.Start()
		w.CreateClaim("data")
		w.Until("the first run is recorded", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "failed" })
		w.Stop()
		fakecluster.Update(w, fakecluster.Admin, fakecluster.List[*batchv1.Job](w)[0], func(job *batchv1.Job) {
			fixture.Record(job, jobs.UIDs(job)[0], func(r *jobs.Record) { r.Hash = "b2c4a0f1e3d5a697" })
		})
		w.Start()
		w.Advance(9 * time.Minute)
		w.MustRun("provision")
		w.Advance(2 * time.Minute)
		w.MustRun("provision", "provision")
		w.MustShow(map[string]string{"attempts": "2"})
	})
}

// Its user reads the beginning first, and may not run a command of an administrator.
func TestTheVerdictIsBeforeTheCommandForTheOutput(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Fails(contract.ExitConfig, "no pool has this name"))
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		all := w.Events.About(onData, "ProvisioningFailed")
		if len(all) == 0 {
			w.T.Fatal("no event\n" + w.Story())
		}
		verdict, output, found := strings.Cut(all[0].Note, "; an administrator finds its output by kubectl ")
		if !found || !strings.HasPrefix(verdict, "BadConfig (exit code 78) of the Job ") || !strings.Contains(output, " describe job ") {
			w.T.Errorf("the event says %q", all[0].Note)
		}
	})
}
