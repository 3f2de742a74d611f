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

// Twenty claims at once become twenty PVs over twenty volumes with twenty passwords, by few Jobs.
// Cinder's quota counts exactly these, and all are deleted again. No other test runs meanwhile,
// since the time is measured.
func TestTwentyClaimsAtOnceGetTwentyVolumes(t *testing.T) {
	w := newWorld(t, "many")
	before, err := cinderVolumes(w.ctx())
	w.must(err, "look at Cinder's volumes")
	const many = 20
	started := time.Now()
	for i := range many {
		w.claim(cinderClass, fmt.Sprintf("data-%02d", i))
	}
	w.allClaims(6*time.Minute, "to be bound", isBound)
	made := w.jobsOfAll("provision", w.claims)
	t.Logf("%d claims bound in %.1f s by Jobs for %v", many, time.Since(started).Seconds(), sizes(made))
	if len(made) > many/3 {
		t.Errorf("%d Jobs for %d claims", len(made), many)
	}
	w.allClaims(2*time.Minute, "to say so", succeeded) // a minute after a batch

	ids, users, words := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var project string
	for _, claim := range w.claims {
		pv := w.pv(claim)
		vol := w.onlyVolume(claim)
		equal(t, "the volume of "+claim.Name, pv.Annotations["flex-provisioner.io/cinder-volume-id"], vol.ID)
		contains(t, "the IQN of "+claim.Name, pv.Spec.ISCSI.IQN, vol.ID)
		equal(t, "attempts for "+claim.Name, w.look(claim).Annotations["flex-provisioner.io/attempts"], "1")
		user, password := w.chap(pv)
		ids[vol.ID], users[user], words[password], project = true, true, true, vol.Project
	}
	equal(t, "distinct volumes", len(ids), many)
	equal(t, "distinct CHAP users", len(users), many)
	equal(t, "distinct CHAP passwords", len(words), many)
	w.checkQuota(project, len(before)+many)

	started = time.Now()
	for _, claim := range w.claims {
		w.deleteClaim(claim)
	}
	w.allClaims(6*time.Minute, "to have gone with all that was made", nothingLeft)
	t.Logf("%d claims gone in %.1f s", many, time.Since(started).Seconds())
	w.checkQuota(project, len(before))
}

// checkQuota checks that so many volumes exist, and that the quota counts exactly these.
func (w *world) checkQuota(project string, want int) {
	w.t.Helper()
	volumes, err := cinderVolumes(w.ctx())
	w.must(err, "look at Cinder's volumes")
	equal(w.t, "volumes in Cinder", len(volumes), want)
	used, reserved, err := quotaUsed(w.ctx(), project)
	w.must(err, "look at Cinder's quota")
	equal(w.t, "volumes that the quota counts", used, want)
	equal(w.t, "volumes that the quota holds back", reserved, 0)
}

// allClaims waits until something holds for every claim of the test.
func (w *world) allClaims(timeout time.Duration, what string, look func(context.Context, *corev1.PersistentVolumeClaim) error) {
	w.t.Helper()
	w.all(w.claims, timeout, what, look)
}

// all waits until something holds for every one of some claims.
func (w *world) all(
	claims []*corev1.PersistentVolumeClaim, timeout time.Duration, what string, look func(context.Context, *corev1.PersistentVolumeClaim) error,
) {
	w.t.Helper()
	waiting := claims
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
