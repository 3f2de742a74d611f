package controller_test

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// An image marks volumes with the cluster's UID, and leaves those of another cluster: it needs it
// on every verb.
func TestEveryRequestCarriesTheClustersUID(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.ClusterUID = "the-cluster"
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.requestSize("2Gi")
		w.Until("it was expanded", time.Minute, func() bool { return len(w.RunsOf(contract.Expand)) > 0 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75))}
		abandoned := w.CreateClaim("abandoned")
		w.Until("it failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) > 1 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		fakecluster.Delete(w, fakecluster.User, claim)
		fakecluster.Delete(w, fakecluster.User, abandoned)
		w.Until("nothing is left", time.Hour, w.Empty)
		undone := false
		for _, r := range w.Runs {
			undone = undone || r.Request.Undo
			if r.Request.ClusterUID != "the-cluster" {
				w.T.Errorf("%s (undo: %v) has the cluster's UID %q", r.Verb, r.Request.Undo, r.Request.ClusterUID)
			}
		}
		if !undone {
			w.T.Error("nothing was undone")
		}
	})
}
