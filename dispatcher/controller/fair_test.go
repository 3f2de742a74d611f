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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// inNamespace puts a claim elsewhere.
func inNamespace(ns string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Namespace = ns }
}

// burst creates claims of one namespace, and lets the dispatcher see them all.
func (w *world) burst(ns string, n int) {
	for i := range n {
		w.claim(fmt.Sprintf("%s-%d", ns, i), inNamespace(ns))
	}
	w.until("the first Jobs are there", time.Minute, func() bool { return len(w.made("")) > 0 })
}

// launchedFor are the namespaces of the claims that Jobs of a verb were made for, in order.
func (w *world) launchedFor(verb contract.Verb) []string {
	var out []string
	for _, c := range w.made(verb) {
		out = append(out, c.now.(*batchv1.Job).Annotations[jobs.AnnNamespace])
	}
	return out
}

// mustServeSoon checks that a namespace's first Job was among the next few after some others.
func (w *world) mustServeSoon(ns string, after, few int) {
	w.t.Helper()
	w.until("a Job for "+ns, time.Minute, func() bool {
		for i, launched := range w.launchedFor("") {
			if launched != ns {
				continue
			}
			if i > after+few {
				w.t.Errorf("the first Job for %s came after %d others, of which %d were made later than its claim", ns, i, i-after)
			}
			return true
		}
		return false
	})
}

// One namespace's 5,000 claims do not hold up another's first, and nobody is looked at for nothing.
func TestItem11ABurstInOneNamespaceDoesNotHoldUpAnother(t *testing.T) {
	const claims, parallel = 5000, 5
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", fmt.Sprint(parallel))
		w.start()
		w.burst("busy", claims)
		w.run(3 * time.Second)
		before, looked := len(w.made("")), w.looks.Load()
		w.claim("first", inNamespace("quiet"))
		w.mustServeSoon("quiet", before, parallel)
		if got := w.most(); got != parallel {
			w.t.Errorf("%d Jobs at a time, want %d", got, parallel)
		}
		t.Logf("%d looks until %d Jobs were made", looked, before)
		if looked > 4*claims {
			w.t.Errorf("%d looks for %d claims of which %d were launched", looked, claims, before)
		}
		if n := w.looks.Load() - looked; n > 500 {
			w.t.Errorf("%d more looks for %d more Jobs", n, len(w.made(""))-before)
		}
	})
}

func TestItem11WithOneSlotNamespacesTakeTurns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1")
		w.start()
		w.burst("busy", 40)
		w.run(5 * time.Second)
		for _, ns := range []string{"quiet", "shy"} {
			before := len(w.made(""))
			w.claim("first", inNamespace(ns))
			w.mustServeSoon(ns, before, 3)
		}
	})
}

// The work for a burst grows with its claims, not with their square.
func TestItem11WorkIsLinearInTheClaims(t *testing.T) {
	looks := func(claims int) (n int64) {
		inWorld(t, func(w *world) {
			w.goldClass(works, "max-parallel", "5")
			w.start()
			w.burst("busy", claims)
			w.until("all are bound and settled", time.Hour, func() bool { return len(w.storage) == claims && w.allBound() && len(w.records()) == 0 })
			n = w.looks.Load()
		})
		return n
	}
	few, many := looks(40), looks(160)
	t.Logf("%d looks for 40 claims, %d for 160", few, many)
	if many > 5*few || many > 30*160 {
		t.Errorf("%d looks for 40 claims, %d for 160: more than linear", few, many)
	}
}

func TestItem11ARestartAmidABurstGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "3")
		w.start()
		w.burst("busy", 30)
		w.run(2 * time.Second)
		w.stop()
		w.start()
		w.run(2 * time.Second)
		before := len(w.made(""))
		w.claim("first", inNamespace("quiet"))
		w.mustServeSoon("quiet", before, 3)
		w.until("all are bound", time.Hour, w.allBound)
		if n := len(w.made("")); n != 31 {
			w.t.Errorf("%d Jobs for 31 claims", n)
		}
		if got := w.most(); got != 3 {
			w.t.Errorf("%d Jobs at a time, want 3", got)
		}
	})
}

// A claim in a backoff, one with a problem and one whose Job is refused hold no slot, and their
// namespace's others go on.
func TestItem11WhoCannotGoHoldsUpNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(func(r *run) ending {
			if r.request.Name == "backs-off" && r.verb == contract.Provision {
				return ending{73, ""}
			}
			return works(r)
		}, "max-parallel", "1")
		w.server.refusing(func(_, _ string, obj object) error {
			job, ok := obj.(*batchv1.Job)
			if !ok {
				return nil
			}
			if request, _, err := runs.RecordedRequest(job.Spec.Template.Annotations, job.Labels[contract.LabelClaimUID]); err != nil || request.Name != "refused" {
				return err
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, errors.New("exceeded quota"))
		})
		w.start()
		w.claim("backs-off")
		w.claim("refused")
		w.claim("has-a-problem", copyOf("nothing"))
		w.run(10 * time.Second)
		for i := range 5 {
			w.claim(fmt.Sprintf("good-%d", i))
		}
		w.until("the others are bound", 30*time.Second, func() bool { return len(w.storage) == 5 })
		w.server.refusing(nil)
		w.until("the refused one is bound", 2*time.Minute, w.bound("refused"))
	})
}

func TestItem11DeletesAndProvisionsDoNotStarveEachOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "2")
		w.start()
		w.burst("app", 20)
		w.until("all are bound", time.Hour, w.allBound)
		old := every[*corev1.PersistentVolumeClaim](w)
		for i := range 20 {
			w.claim(fmt.Sprintf("new-%d", i))
		}
		w.run(2 * time.Second)
		for _, claim := range old {
			drop(w, user, claim)
		}
		w.run(12 * time.Second)
		deleted, provisioned := len(w.ran(contract.Delete)), len(w.ran(contract.Provision))-20
		if deleted < 7 || provisioned < 7 {
			w.t.Errorf("within 14 s %d were deleted and %d provisioned", deleted, provisioned)
		}
		w.until("all is done", time.Hour, func() bool { return len(w.ran(contract.Delete)) == 20 && len(w.storage) == 20 })
	})
}

func TestItem11AHigherMaxParallelServesThoseWhoWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1")
		w.images[gold] = image{does: works, takes: time.Minute}
		w.start()
		w.burst("busy", 10)
		w.run(10 * time.Second)
		w.reconfigure("max-parallel", "10")
		w.until("all have a Job", 5*time.Second, func() bool { return len(w.made("")) == 10 })
	})
}
