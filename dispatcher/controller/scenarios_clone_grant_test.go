package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
