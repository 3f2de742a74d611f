package controller_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// inNamespace puts a claim elsewhere.
func inNamespace(ns string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Namespace = ns }
}

// burst creates claims of one namespace, and lets the dispatcher see them all.
func (w *world) burst(ns string, n int) {
	for i := range n {
		w.CreateClaim(fmt.Sprintf("%s-%d", ns, i), inNamespace(ns))
	}
	w.Until("the first Jobs are there", time.Minute, func() bool { return len(w.CreatedJobs("")) > 0 })
}

// launchedFor are the namespaces of the claims that Jobs of a verb were made for, in order.
func (w *world) launchedFor(verb contract.Verb) []string {
	var out []string
	for _, c := range w.CreatedJobs(verb) {
		out = append(out, jobs.FirstNamespace(c.Now.(*batchv1.Job)))
	}
	return out
}

// mustServeSoon checks that a namespace's first Job was among the next few after some others.
func (w *world) mustServeSoon(ns string, after, few int) {
	w.T.Helper()
	w.Until("a Job for "+ns, time.Minute, func() bool {
		for i, launched := range w.launchedFor("") {
			if launched != ns {
				continue
			}
			if i > after+few {
				w.T.Errorf("the first Job for %s came after %d others, of which %d were made later than its claim", ns, i, i-after)
			}
			return true
		}
		return false
	})
}

// One namespace's 1,000 claims do not hold up another's first, and no claim is reconciled for
// nothing.
func TestABurstInOneNamespaceDoesNotHoldUpAnother(t *testing.T) {
	const claims, parallel = 1000, 5
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", fmt.Sprint(parallel))
		w.Start()
		w.burst("busy", claims)
		w.Advance(3 * time.Second)
		before, reconciled := len(w.CreatedJobs("")), w.reconciles()
		w.CreateClaim("first", inNamespace("quiet"))
		w.mustServeSoon("quiet", before, parallel)
		if got := w.most(); got != parallel {
			w.T.Errorf("%d Jobs at a time, want %d", got, parallel)
		}
		t.Logf("%d reconciles until %d Jobs were made", reconciled, before)
		if reconciled > 4*claims {
			w.T.Errorf("%d reconciles for %d claims of which %d were launched", reconciled, claims, before)
		}
		if n := w.reconciles() - reconciled; n > 500 {
			w.T.Errorf("%d more reconciles for %d more Jobs", n, len(w.CreatedJobs(""))-before)
		}
	})
}

func TestWithOneSlotNamespacesAlternate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Start()
		w.burst("busy", 40)
		w.Advance(5 * time.Second)
		for _, ns := range []string{"quiet", "shy"} {
			before := len(w.CreatedJobs(""))
			w.CreateClaim("first", inNamespace(ns))
			w.mustServeSoon(ns, before, 3)
		}
	})
}

// The work for a burst grows with its claims, not with their square.
func TestWorkIsLinearInTheClaims(t *testing.T) {
	reconciles := func(claims int) (n int64) {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Works, "max-parallel", "5")
			w.Start()
			w.burst("busy", claims)
			w.Until("all are bound and settled", time.Hour, func() bool { return len(w.Storage) == claims && w.AllBound() && len(w.HeldRecords()) == 0 })
			n = w.reconciles()
		})
		return n
	}
	few, many := reconciles(40), reconciles(160)
	t.Logf("%d reconciles for 40 claims, %d for 160", few, many)
	if many > 5*few || many > 30*160 {
		t.Errorf("%d reconciles for 40 claims, %d for 160: more than linear", few, many)
	}
}

func TestRestartAmidABurstGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "3")
		w.Start()
		w.burst("busy", 30)
		w.Advance(2 * time.Second)
		w.Stop()
		w.Start()
		w.Advance(2 * time.Second)
		before := len(w.CreatedJobs(""))
		w.CreateClaim("first", inNamespace("quiet"))
		w.mustServeSoon("quiet", before, 3)
		w.Until("all are bound", time.Hour, w.AllBound)
		if n := len(w.CreatedJobs("")); n != 31 {
			w.T.Errorf("%d Jobs for 31 claims", n)
		}
		if got := w.most(); got != 3 {
			w.T.Errorf("%d Jobs at a time, want 3", got)
		}
	})
}

// A claim in a backoff, one with a problem and one whose Job is refused hold no slot, and their
// namespace's others go on.
func TestAClaimThatCannotBeLaunchedHoldsNoSlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Request.Name == "backs-off" && r.Verb == contract.Provision {
				return fakecluster.Exit{Code: 73}
			}
			return fakecluster.Works(r)
		}, "max-parallel", "1")
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			job, ok := obj.(*batchv1.Job)
			if !ok {
				return nil
			}
			if jobs.RecordOf(job, job.Labels[contract.LabelClaimUID]).Name != "refused" {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, errors.New("exceeded quota"))
		})
		w.Start()
		w.CreateClaim("backs-off")
		w.CreateClaim("refused")
		w.CreateClaim("has-a-problem", copyOf("nothing"))
		w.Advance(10 * time.Second)
		for i := range 5 {
			w.CreateClaim(fmt.Sprintf("good-%d", i))
		}
		w.Until("the others are bound", 30*time.Second, func() bool { return len(w.Storage) == 5 })
		w.Server.Refuse(nil)
		w.Until("the refused one is bound", 2*time.Minute, w.IsBound("refused"))
	})
}

func TestDeletesAndProvisionsDoNotStarveEachOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "2")
		w.Start()
		w.burst("app", 20)
		w.Until("all are bound", time.Hour, w.AllBound)
		old := fakecluster.List[*corev1.PersistentVolumeClaim](w)
		for i := range 20 {
			w.CreateClaim(fmt.Sprintf("new-%d", i))
		}
		w.Advance(2 * time.Second)
		for _, claim := range old {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Advance(12 * time.Second)
		deleted, provisioned := len(w.RunsOf(contract.Delete)), len(w.RunsOf(contract.Provision))-20
		if deleted < 7 || provisioned < 7 {
			w.T.Errorf("within 14 s %d were deleted and %d provisioned", deleted, provisioned)
		}
		w.Until("all is done", time.Hour, func() bool { return len(w.RunsOf(contract.Delete)) == 20 && len(w.Storage) == 20 })
	})
}

func TestARaisedMaxParallelLaunchesWhatWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		w.Start()
		w.burst("busy", 10)
		w.Advance(10 * time.Second)
		w.UpdateConfig("max-parallel", "10")
		w.Until("all have a Job", 5*time.Second, func() bool { return len(w.CreatedJobs("")) == 10 })
	})
}
