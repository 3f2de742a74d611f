package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// Kubernetes binds a claim that names a terminating PV, if that names the claim. The claim was bound to
// a volume that was being deleted, and its result said that it had succeeded.
func TestAClaimThatNamesItsDeletedPVIsNotBoundToIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(spoils(tooSmall)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("it was tried", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 2 * time.Minute}
		w.Until("its PV is taken back", time.Minute, func() bool {
			pv := w.PVOf(claim)
			return pv != nil && pv.DeletionTimestamp != nil && len(w.RunningPods()) == 1
		})
		fakecluster.Update(w, fakecluster.User, w.Claim("data"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = contract.PVName(string(claim.UID)) })
		w.Advance(time.Minute)
		hasPhase := func() bool { return w.Claim("data").Status.Phase == corev1.ClaimBound }
		if hasPhase() {
			t.Error("it is bound to a volume that is being deleted")
		}
		w.Until("the PV is deleted", time.Hour, func() bool { return w.PVOf(claim) == nil })
		w.MustRun("provision", "delete")
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}
