package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// pending are the series about claims that wait.
var pending = []string{"flex_dispatcher_claims_pending", "flex_dispatcher_oldest_pending"}

func TestPendingClaimsAreCountedByWhatTheyWaitFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Fails(contract.ExitCapacity, ""))
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete)
		w.Start()
		first := w.CreateClaim("one")
		w.Advance(10 * time.Second)
		w.CreateClaim("two")
		late := w.CreateClaim("three", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("silver") })
		w.Advance(10 * time.Second)
		w.mustCount(pending, map[string]float64{
			`flex_dispatcher_claims_pending{class="gold",reason="NoCapacity"}`:                                 2,
			`flex_dispatcher_claims_pending{class="silver",reason="WaitingForConfig"}`:                         1,
			`flex_dispatcher_oldest_pending_claim_timestamp_seconds{class="gold",reason="NoCapacity"}`:         float64(first.CreationTimestamp.Unix()),
			`flex_dispatcher_oldest_pending_claim_timestamp_seconds{class="silver",reason="WaitingForConfig"}`: float64(late.CreationTimestamp.Unix()),
		})
	})
}

// An administrator is not to be called for a claim that the class refuses on purpose.
func TestAClaimOfAnUnlistedNamespaceIsCountedAsSuch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "namespaces", "team-a")
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(10 * time.Second)
		w.mustCount(pending, map[string]float64{
			`flex_dispatcher_claims_pending{class="gold",reason="NamespaceNotListed"}`:                         1,
			`flex_dispatcher_oldest_pending_claim_timestamp_seconds{class="gold",reason="NamespaceNotListed"}`: float64(claim.CreationTimestamp.Unix()),
		})
	})
}

func TestAClaimThatIsAtWorkOrBoundIsCountedAsSuch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.NoPodFor["slow"] = true
		w.Start()
		w.CreateClaim("data")
		slow := w.CreateClaim("slow")
		w.Until("one is bound", time.Minute, w.IsBound("data"))
		w.mustCount(pending, map[string]float64{
			`flex_dispatcher_claims_pending{class="gold",reason="Running"}`:                         1,
			`flex_dispatcher_oldest_pending_claim_timestamp_seconds{class="gold",reason="Running"}`: float64(slow.CreationTimestamp.Unix()),
		})
	})
}

// A claim of a class that waits for a pod is not the dispatcher's yet.
func TestAClaimThatWaitsForAPodIsNotPending(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		w.CreateClaim("data")
		w.Advance(10 * time.Second)
		w.mustCount(pending, nil)
	})
}

func TestAHeldRecordIsCountedUntilItIsReleased(t *testing.T) {
	held := []string{"flex_dispatcher_records_held"}
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(contract.ExitTempFail)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(20 * time.Second)
		w.mustCount(held, map[string]float64{`flex_dispatcher_records_held{class="gold"}`: 1})
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Hour, w.Empty)
		w.mustCount(held, nil)
	})
}
