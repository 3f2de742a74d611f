package controller_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// lateGrants knows its answer from a time on.
type lateGrants struct {
	from    time.Time
	allowed bool
}

func (g lateGrants) Allows(context.Context, types.NamespacedName, string) (allowed bool, again time.Time, err error) {
	if now := time.Now(); now.Before(g.from) {
		return false, now.Add(time.Second), nil
	}
	return g.allowed, again, nil
}

// While it is unknown whether a namespace consents, a clone from it waits, and no event says that it
// is refused.
func TestACloneWaitsUntilTheConsentIsKnown(t *testing.T) {
	for name, allowed := range map[string]bool{"allowed": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				known := time.Now().Add(time.Minute)
				w.options.Grants = lateGrants{known, allowed}
				w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
				w.startWithNodes()
				source := w.CreateClaim("source", inNamespace("host"))
				w.Until("the source is bound", 30*time.Second, w.AllBound)
				w.CreateClaim("clone", func(c *corev1.PersistentVolumeClaim) {
					c.Annotations = map[string]string{"k8s.io/CloneRequest": source.Namespace + "/" + source.Name}
				})
				refused := func() bool { return len(w.Events.About("PersistentVolumeClaim/clone", "SourceRefused")) > 0 }
				w.Advance(time.Until(known) - time.Second)
				if refused() || len(w.CreatedJobs("")) != 1 {
					t.Errorf("refused: %t, with %d Jobs", refused(), len(w.CreatedJobs("")))
				}
				if w.Advance(5 * time.Second); refused() == allowed || w.IsBound("clone")() != allowed {
					t.Errorf("refused: %t, bound: %t", refused(), w.IsBound("clone")())
				}
			})
		})
	}
}

// grantsUntil has an answer until it is broken: then it is not known, or there is an error instead.
type grantsUntil struct {
	broken *atomic.Bool
	fails  bool
}

func (g grantsUntil) Allows(context.Context, types.NamespacedName, string) (allowed bool, again time.Time, err error) {
	switch {
	case !g.broken.Load():
		return true, again, nil
	case g.fails:
		return false, again, errors.New("list the ReferenceGrants in host: context deadline exceeded")
	default:
		return false, time.Now().Add(time.Second), nil
	}
}

// batchWithClone launches a batch of the claims victim and clone, whose source is in another namespace,
// and calls broken when it waits at its gate or, if that is late, when its containers have failed.
func (w *world) batchWithClone(late bool, broken func()) {
	w.T.Helper()
	w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim", "max-parallel", "1", "batch-size", "8")
	w.startWithNodes()
	source := w.CreateClaim("source", inNamespace("host"))
	w.Until("the source is bound", 30*time.Second, w.AllBound)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
	w.CreateClaim("first")
	w.Until("the first pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	w.CreateClaim("victim")
	w.CreateClaim("clone", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"k8s.io/CloneRequest": source.Namespace + "/" + source.Name}
	})
	var failing atomic.Bool
	failing.Store(late)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 10 * time.Second, Does: func(r *fakecluster.Run) fakecluster.Exit {
		if failing.Load() {
			return fakecluster.Exit{Code: 75}
		}
		return fakecluster.Works(r)
	}}
	w.Until("the batch is there", 2*time.Minute, func() bool { return len(w.CreatedJobs(contract.Provision)) == 3 })
	if late {
		w.Until("the batch runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	}
	broken()
	w.Advance(15 * time.Second)
	failing.Store(false)
	w.Advance(5 * time.Minute)
}

// Whoever owns a namespace makes its list of grants fail, or take long. The claims of others that shared
// a Job with a clone of it once waited for that, and its error was reported on them.
func TestTheGrantsOfATenantHoldUpNoClaimOfItsBatch(t *testing.T) {
	for name, test := range map[string]struct{ late, fails bool }{
		"at the gate, not known": {false, false}, "at the gate, an error": {false, true}, "at the end, not known": {true, false}, "at the end, an error": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var broken atomic.Bool
				w.options.Grants = grantsUntil{&broken, test.fails}
				w.batchWithClone(test.late, func() { broken.Store(true) })
				if !w.IsBound("victim")() {
					t.Error("the claim of another tenant waits for the grants of the source")
				}
				w.MustEmit("PersistentVolumeClaim/victim", reason.WriteFailed, 0)
				if test.late && test.fails {
					w.mustTell("PersistentVolumeClaim/clone", reason.SourceRefused, "deadline exceeded", "host/source")
				}
			})
		})
	}
}

// The claim of one member could not be read, and no outcome of its batch was recorded.
func TestAClaimThatCannotBeReadHoldsUpNoOutcomeOfItsBatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.startWithNodes()
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		w.CreateClaim("busy")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.CreateClaim("victim", inNamespace("tenant")) // the first of its batch, since its namespace has no slot
		w.CreateClaim("other")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Fails(75, "")), Takes: 10 * time.Second}
		w.Until("the batch runs", 2*time.Minute, func() bool { return len(w.CreatedJobs(contract.Provision)) == 2 && len(w.RunningPods()) == 1 })
		w.Server.Forbidden.Store(fakecluster.ClaimNamespace, true)
		w.Advance(time.Minute)
		w.MustEmitSome("PersistentVolumeClaim/victim", reason.ProvisioningFailed)
		w.MustEmit("PersistentVolumeClaim/victim", reason.WriteFailed, 0)
	})
}

// consents are grants of which each answer is kept for a minute, and is unknown for four seconds after that.
type consents struct {
	mu      sync.Mutex
	revoked bool
	asked   time.Time
	was     bool
}

func (g *consents) Allows(context.Context, types.NamespacedName, string) (allowed bool, again time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	const takes = 4 * time.Second
	now := time.Now()
	if g.asked.IsZero() || now.After(g.asked.Add(takes+time.Minute)) {
		g.asked, g.was = now, !g.revoked
	}
	if now.Before(g.asked.Add(takes)) {
		return false, now.Add(time.Second), nil
	}
	return g.was, time.Time{}, nil
}

func (g *consents) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoked = true
}

// The Job of a clone gets no pod for minutes: another controller has suspended it. Meanwhile the consent
// is revoked, and what was known of it has expired.
func TestAConsentThatIsRevokedBeforeTheCloneStartsHolds(t *testing.T) {
	inWorld(t, func(w *world) {
		grants := &consents{}
		w.options.Grants = grants
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim", "timeout", "1h")
		w.startWithNodes()
		source := w.CreateClaim("source", inNamespace("host"))
		w.Until("the source is bound", time.Minute, w.AllBound)
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if job, isJob := obj.(*batchv1.Job); isJob && verb == "create" {
				job.Spec.Suspend = new(true)
			}
			return nil
		})
		w.CreateClaim("clone", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": source.Namespace + "/" + source.Name}
		})
		w.Until("the clone is launched", time.Minute, func() bool { return len(w.CreatedJobs(contract.Provision)) == 2 })
		grants.revoke()
		w.Advance(4 * time.Minute)
		w.Server.Refuse(nil)
		for _, job := range fakecluster.List[*batchv1.Job](w) {
			if job.Spec.Suspend != nil {
				fakecluster.Update(w, "kueue", job, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
			}
		}
		w.Advance(3 * time.Minute)
		if w.IsBound("clone")() {
			t.Error("a claim was cloned minutes after the consent was revoked")
		}
	})
}
