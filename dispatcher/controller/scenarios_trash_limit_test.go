package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// ofSize is a change of a claim: what it asks for.
func ofSize(size string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

// trash provisions claims of these sizes, and deletes one after the other.
func (w *world) trash(sizes ...string) (claims []*corev1.PersistentVolumeClaim) {
	w.T.Helper()
	for i, size := range sizes {
		name := fmt.Sprintf("trash-%d-%d", len(w.Runs), i)
		claim := w.CreateClaim(name, ofSize(size))
		w.Until(name+" is bound", time.Minute, w.IsBound(name))
		claims = append(claims, claim)
	}
	w.Advance(time.Minute) // what was bound for less goes first
	for _, claim := range claims {
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Minute)
	}
	return claims
}

// mustHold fails the test unless the storage has these volumes, and no other.
func (w *world) mustHold(when string, claims ...*corev1.PersistentVolumeClaim) {
	w.T.Helper()
	for _, claim := range claims {
		if pv := w.PVOf(claim); pv == nil || pv.DeletionTimestamp != nil || !w.Storage[string(claim.UID)] {
			w.T.Fatalf("%s: the volume of %s was deleted", when, claim.Name)
		}
	}
	if len(w.Storage) != len(claims) {
		w.T.Fatalf("%s: the storage has %d volumes, want %d", when, len(w.Storage), len(claims))
	}
}

func TestALimitOfTheTrashDeletesTheOldestVolumesFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "keep-deleted", "168h", "keep-deleted-limit", "5Gi")
		w.Start()
		first := w.trash("2Gi", "2Gi")
		w.mustHold("within the limit", first...)
		w.MustEmitSome("PersistentVolume/"+w.PVOf(first[1]).Name, "VolumeKept", "kept until", "keep-deleted-limit: 5Gi")
		oldest := w.PVOf(first[0])
		second := w.trash("3Gi")
		w.mustHold("above the limit", first[1], second[0])
		w.MustEmit("PersistentVolume/"+oldest.Name, "Deleting", 2)
		why := "before the time of keep-deleted: with those of the namespace app that were released later, its bytes exceed keep-deleted-limit: 5Gi (a smaller volume counts as 1Gi)"
		if said := w.Events.About("PersistentVolume/"+oldest.Name, "Deleting")[0].Note; !strings.HasSuffix(said, why) {
			t.Errorf("the event says %s", said)
		}
		large := w.trash("6Gi")
		w.mustHold("larger than the limit", first[1], second[0])
		if w.PVOf(large[0]) != nil {
			t.Error("its PV is there")
		}
		w.Stop()
		w.Start()
		w.Advance(100 * time.Hour)
		w.mustHold("after a restart", first[1], second[0])
		w.UpdateConfig("keep-deleted-limit", "3Gi")
		w.Advance(time.Minute)
		w.mustHold("after the limit was lowered", second[0])
	})
}

// A limit that cannot be read deletes nothing, and one that is taken away neither.
func TestALimitOfTheTrashThatIsNoneDeletesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "keep-deleted", "168h", "keep-deleted-limit", "5Gi")
		w.Start()
		kept := w.trash("2Gi", "2Gi")
		for _, text := range []string{"0", "", "100"} {
			w.UpdateConfig("keep-deleted-limit", text)
			w.Advance(time.Hour)
			w.mustHold("with the limit "+text, kept...)
		}
		w.MustEmitSome("PersistentVolume/"+w.PVOf(kept[0]).Name, "InvalidConfig", "keep-deleted-limit", "500Gi")
		w.UpdateConfig("keep-deleted-limit", "4Gi", "keep-deleted-limits", "1Gi")
		w.Advance(time.Hour)
		w.mustHold("with a key that is misspelt", kept...)
	})
}

// The limit is that of a namespace. What no claim can get any more does not count: a volume that is
// bound again, a spare one, one that is being deleted.
func TestALimitOfTheTrashCountsWhatANamespaceCouldGetBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "keep-deleted", "168h", "keep-deleted-limit", "5Gi")
		w.Start()
		kept := w.trash("2Gi", "3Gi")
		newer := w.PVOf(kept[1])
		to := types.NamespacedName{Namespace: fakecluster.ClaimNamespace, Name: "heir"}
		if err := admin.Undelete(w.Context(), w.Server.Client(fakecluster.Admin), newer, nil, to); err != nil {
			t.Fatal(err)
		}
		w.Until("the heir is bound", time.Minute, w.IsBound("heir"))
		more := w.trash("3Gi")
		w.mustHold("beside one that was undeleted", kept[0], kept[1], more[0])
		if err := admin.Empty(w.Context(), w.Server.Client(fakecluster.Admin), w.PVOf(more[0])); err != nil {
			t.Fatal(err)
		}
		w.Until("it is deleted", time.Minute, func() bool { return w.PVOf(more[0]) == nil })
		last := w.trash("1Gi") // too small for the claim that comes then
		w.mustHold("beside one that was emptied", kept[0], kept[1], last[0])
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(last[0]), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		again := w.trash("3Gi")
		w.mustHold("beside one that has no claimRef any more", kept[0], kept[1], last[0], again[0])
	})
}

// What the limit made due waits at its gate, and is kept as soon as there is room for it again.
func TestADeleteThatTheLimitNoLongerNeedsIsCancelled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "keep-deleted", "168h", "keep-deleted-limit", "4Gi")
		w.Start()
		kept := w.trash("2Gi", "2Gi")
		w.NoPodFor[kept[0].Name] = true
		more := w.trash("2Gi")
		w.Until("a delete is launched", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		to := types.NamespacedName{Namespace: fakecluster.ClaimNamespace, Name: "heir"}
		if err := admin.Undelete(w.Context(), w.Server.Client(fakecluster.Admin), w.PVOf(more[0]), nil, to); err != nil {
			t.Fatal(err)
		}
		delete(w.NoPodFor, kept[0].Name)
		w.Advance(time.Hour)
		w.mustHold("after the undelete", append(kept, more...)...)
	})
}

func TestTheTrashIsCountedByClass(t *testing.T) {
	series := []string{"flex_dispatcher_trash_"}
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "keep-deleted", "1h")
		w.Start()
		w.mustCount(series, nil)
		w.trash("2Gi", "3Gi")
		w.mustCount(series, map[string]float64{
			`flex_dispatcher_trash_volumes{class="gold"}`: 2,
			`flex_dispatcher_trash_bytes{class="gold"}`:   5 << 30,
		})
		w.UpdateConfig("keep-deleted", "none")
		w.Advance(2 * time.Hour)
		w.mustCount(series, map[string]float64{
			`flex_dispatcher_trash_volumes{class="gold"}`: 2,
			`flex_dispatcher_trash_bytes{class="gold"}`:   5 << 30,
		})
		w.UpdateConfig("keep-deleted", "1h")
		w.Until("nothing is left", time.Minute, w.Empty)
		w.mustCount(series, nil)
	})
}

func TestAFullStorageSaysWhatTheTrashHolds(t *testing.T) {
	inWorld(t, func(w *world) {
		full := false
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if full && r.Verb == contract.Provision {
				return fakecluster.Fails(contract.ExitCapacity, "no room")(r)
			}
			return fakecluster.Works(r)
		}, "keep-deleted", "1h")
		w.Start()
		full = true
		w.CreateClaim("early")
		w.Advance(time.Minute)
		w.MustNotContain("PersistentVolumeClaim/early", "kubectl flex trash")
		full = false
		w.trash("2Gi", "3Gi")
		full = true
		w.CreateClaim("late")
		w.Advance(time.Minute)
		w.MustEmitSome("PersistentVolumeClaim/late", "ProvisioningFailed", "NoCapacity",
			"Volumes of deleted claims of the class have 5Gi", "Remedy: an administrator", "kubectl flex trash NAMESPACE/CLAIM --empty")
	})
}
