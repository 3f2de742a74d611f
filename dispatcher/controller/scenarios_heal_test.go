package controller_test

import (
	"testing"
	"time"

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
		w.MustContain(onData, "UndoFailed", []string{"delete-", "exit code 127", "annotate job provision-", "forget="})
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
