package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// correct gives the config an image that works, and whatever else changes.
func (w *world) correct(keys ...string) {
	const corrected = "localhost/gold:v2"
	w.Images[corrected] = fakecluster.Image{Does: fakecluster.Works}
	w.UpdateConfig(append(keys, "image", corrected)...)
}

// A tool is missing in the image, for provision and delete alike.
func TestACorrectedConfigServesTheClaimThatFailedBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Fails(127, "jq: not found"))
		w.Start()
		w.CreateClaim("data")
		w.Until("the first run has failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
		w.Advance(5 * time.Second)
		w.correct()
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}

// The undo fails under its own revision, and under the present one the storage would be another.
func TestAClaimSaysThatTheUndoOfItsLastRunFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Fails(127, "jq: not found"), "backend", "misspelt")
		w.Start()
		w.CreateClaim("data")
		w.Until("the first run has failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
		w.correct("backend", "right")
		w.Advance(time.Hour)
		if w.IsBound("data")() {
			w.T.Error("what an earlier run may have made in another storage is forgotten")
		}
		w.MustContain(onData, "UndoFailed", []string{"delete-", "exit code 127", "annotate --overwrite job provision-", "forget="})
	})
}

func TestADeleteThatFailsIsTriedUnderTheCorrectedConfig(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(127, "jq: not found")}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(5 * time.Minute)
		w.correct()
		w.Until("the volume is deleted", time.Minute, func() bool { return len(w.Storage) == 0 && w.PVOf(claim) == nil })
	})
}

// What is launched under the corrected config is wanted when its pod is gated, too: it is not
// cancelled and launched again and again.
func TestADeleteThatNeverStartedRunsOnceUnderTheCorrectedConfig(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.NoPodFor["data"] = true
		fakecluster.Delete(w, fakecluster.User, claim)
		for n := range 2 {
			w.Until("there is a delete", 5*time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) > n })
			name := w.CreatedJobs(contract.Delete)[n].Name
			fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, name))
		}
		w.correct()
		w.NoPodFor["data"] = false
		w.Until("the volume is deleted", 5*time.Minute, func() bool { return len(w.Storage) == 0 && w.PVOf(claim) == nil })
		all := w.CreatedJobs(contract.Delete)
		if len(all) != 3 {
			t.Errorf("%d deletes", len(all))
		}
		made, last := all[0].Now.(*batchv1.Job), all[len(all)-1].Now.(*batchv1.Job)
		if made.Annotations[contract.AnnRevision] == last.Annotations[contract.AnnRevision] {
			t.Error("the last delete ran under the config that made the volume")
		}
	})
}

func TestADeleteIsNotTriedInAnotherStorage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "backend", "one")
		w.Start()
		claim := w.provisioned("data")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(127, "jq: not found")}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(5 * time.Minute)
		w.correct("backend", "another")
		w.Advance(time.Hour)
		if len(w.Storage) == 0 {
			w.T.Error("a config that reaches another storage has deleted the volume")
		}
	})
}

func TestAnExpandThatFailsIsTriedUnderTheCorrectedConfig(t *testing.T) {
	for backend, grows := range map[string]bool{"one": true, "another": false} {
		inWorld(t, func(w *world) {
			fails := fakecluster.Fails(127, "resize: not found")
			w.SetUpExpandableGold(expanding(fails, fails, fails, fails, fails, fails, fails, fails, fails, fails, fails, fails, fails, fails, fails, fails), "backend", "one")
			w.Start()
			w.provisioned("data")
			w.requestSize("2Gi")
			w.Advance(5 * time.Minute)
			before, failed := len(w.RunsOf(contract.Expand)), 0
			w.Images["localhost/gold:v2"] = fakecluster.Image{Does: func(r *fakecluster.Run) fakecluster.Exit {
				if failed++; failed < 3 { // it is tried again with the ordinary backoff
					return fails(r)
				}
				return fakecluster.Works(r)
			}}
			w.UpdateConfig("image", "localhost/gold:v2", "backend", backend)
			w.Advance(time.Minute)
			if n := len(w.RunsOf(contract.Expand)) - before; grows && n != 3 {
				w.T.Errorf("%d expands", n)
			}
			if grown := w.hasSize("2Gi")(); grown != grows {
				w.T.Errorf("with the backend %s the volume has grown: %t", backend, grown)
			}
		})
	}
}

// The storage is away, and the administrator edits the verbs of the class meanwhile.
func TestNoConfigThatCannotDeleteTakesThePlaceOfOneThatCan(t *testing.T) {
	inWorld(t, func(w *world) {
		away := true
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete && away {
				return fakecluster.Exit{Code: 69, Message: "the storage does not answer"}
			}
			return fakecluster.Works(r)
		}}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		claim := w.provisioned("data")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("two deletes failed", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 2 })
		w.UpdateConfig("verbs", "provision")
		w.Advance(10 * time.Minute)
		away = false
		w.Advance(40 * time.Minute)
		if w.Storage[string(claim.UID)] {
			w.T.Errorf("the volume is not deleted although the revision that made it can delete; runs %v", w.Verbs())
		}
	})
}

// The Jobs of more failed runs than a person reads are kept for a shorter time, and still until the next
// run of their claim.
func TestManyDeletesThatFailAreTriedUnderTheCorrectedConfig(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		const n = 120
		var claims []*corev1.PersistentVolumeClaim
		for i := range n {
			claims = append(claims, w.CreateClaim(fmt.Sprintf("data-%d", i)))
		}
		w.Until("all are bound", 10*time.Minute, func() bool { return len(w.Storage) == n && w.IsBound("data-119")() })
		w.Advance(time.Minute)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(78, "no such pool")}
		for _, claim := range claims {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Advance(15 * time.Minute)
		w.correct()
		w.Advance(30 * time.Minute)
		if left := len(w.Storage); left > 0 {
			w.T.Errorf("%d of %d volumes are left half an hour after the config was corrected", left, n)
		}
	})
}
