//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Twenty claims at once become twenty PVs over twenty volumes with twenty passwords, and all go again.
// No other test runs meanwhile, since the seconds are of interest.
func TestTwentyClaimsAtOnceGetTwentyVolumes(t *testing.T) {
	w := newWorld(t, "many")
	before, err := cinderVolumes(w.ctx())
	w.must(err, "look at Cinder's volumes")
	const many = 20
	started := time.Now()
	for i := range many {
		w.claim(cinderClass, fmt.Sprintf("data-%02d", i))
	}
	w.allClaims(4*time.Minute, "to be bound", succeeded)
	t.Logf("%d claims bound in %.1f s", many, time.Since(started).Seconds())

	ids, users, words := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, claim := range w.claims {
		pv := w.pv(claim)
		vol := w.onlyVolume(claim)
		equal(t, "the volume of "+claim.Name, pv.Annotations["flex-provisioner.io/cinder-volume-id"], vol.ID)
		contains(t, "the IQN of "+claim.Name, pv.Spec.ISCSI.IQN, vol.ID)
		user, password := w.chap(pv)
		ids[vol.ID], users[user], words[password] = true, true, true
	}
	equal(t, "distinct volumes", len(ids), many)
	equal(t, "distinct CHAP users", len(users), many)
	equal(t, "distinct CHAP passwords", len(words), many)
	after, err := cinderVolumes(w.ctx())
	w.must(err, "look at Cinder's volumes")
	equal(t, "volumes in Cinder", len(after), len(before)+many)

	started = time.Now()
	for _, claim := range w.claims {
		w.deleteClaim(claim)
	}
	w.allClaims(4*time.Minute, "to have gone with all that was made", nothingLeft)
	t.Logf("%d claims gone in %.1f s", many, time.Since(started).Seconds())
	after, err = cinderVolumes(w.ctx())
	w.must(err, "look at Cinder's volumes")
	equal(t, "volumes in Cinder", len(after), len(before))
}

// allClaims waits until something holds for every claim of the test.
func (w *world) allClaims(timeout time.Duration, what string, look func(context.Context, *corev1.PersistentVolumeClaim) error) {
	w.t.Helper()
	waiting := w.claims
	w.eventually(timeout, fmt.Sprintf("all %d claims %s", len(waiting), what), func(ctx context.Context) error {
		var rest []*corev1.PersistentVolumeClaim
		var complaints []error
		for _, claim := range waiting {
			if err := look(ctx, claim); err != nil {
				rest = append(rest, claim)
				complaints = append(complaints, fmt.Errorf("%s: %w", claim.Name, err))
			}
		}
		waiting = rest
		return errors.Join(complaints...)
	})
}
