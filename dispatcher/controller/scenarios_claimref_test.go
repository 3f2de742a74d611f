package controller_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A container may write the claim's UID with the name of another claim. Kubernetes binds no claim
// to such a PV, since name and UID must match, and calls it Released although its claim exists.
func TestAPVWithTheClaimsUIDAndAnotherNameIsReportedAndKept(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.ObjectReference){
		"another name":       func(ref *corev1.ObjectReference) { ref.Name = "other" },
		"another namespace":  func(ref *corev1.ObjectReference) { ref.Namespace = "other" },
		"an impossible name": func(ref *corev1.ObjectReference) { ref.Name = "a/b" },
	} {
		for _, code := range []int32{0, 1} {
			t.Run(fmt.Sprintf("%s, exit %d", name, code), func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.SetUpGold(fakecluster.Script(func(r *fakecluster.Run) fakecluster.Exit {
						r.CreateVolume()
						r.WritePV(func(pv *corev1.PersistentVolume) { spoil(pv.Spec.ClaimRef) })
						return fakecluster.Exit{Code: code}
					}))
					w.CreateClaim("other", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("tin") })
					w.Start()
					claim := w.CreateClaim("data")
					w.Advance(time.Hour)
					w.MustRun("provision")
					w.MustEmitSome("PersistentVolumeClaim/data", "VolumeInDoubt", "has a claimRef to another claim")
					if got := w.Claim("data").Annotations[contract.AnnResult]; got == "succeeded" || len(w.Events.About("PersistentVolumeClaim/data", "ProvisioningSucceeded")) > 0 {
						w.T.Errorf("it counts as a success: %q", got)
					}
					if !w.Storage[string(claim.UID)] {
						w.T.Error("the volume has gone")
					}
					w.Stop()
					w.Start()
					w.Advance(time.Hour)
					w.MustRun("provision")
					fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
					w.Until("the volume has gone", time.Hour, func() bool { return !w.Storage[string(claim.UID)] })
				})
			})
		}
	}
}
