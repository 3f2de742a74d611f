package run_test

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// killed is how many claims the batches have that are killed at every request.
const killed = 2

func (w *world) provisionKilled(t *testing.T) run.Result {
	t.Helper()
	return w.batch(t, contract.Provision, killed, nil)
}

func (w *world) removeKilled(t *testing.T) run.Result {
	t.Helper()
	return w.batch(t, contract.Delete, killed, nil)
}

func killedAreServed(t *testing.T, w *world) {
	t.Helper()
	w.served(t, killed)
}

// A batch ends after its k-th request to Cinder or Kubernetes, for every k, and is run again, as a
// batch or each claim alone. Each claim has one volume, one Secret and one PV then; after a delete
// it has none. That it ends before the request leaves what it leaves after the one before.
func TestBatchKilledAtAnyRequestIsCompletedByTheNext(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		before := func(w *world) { w.api, w.cinder.Quota = api, 1000 }
		t.Run(string(api)+", provision", func(t *testing.T) {
			killEverywhere(t, cindertest.DropAnswer, before, (*world).provisionKilled, killedAreServed)
		})
		t.Run(string(api)+", provision, then alone", func(t *testing.T) { killThenAlone(t, before) })
		t.Run(string(api)+", delete", func(t *testing.T) {
			killEverywhere(t, cindertest.DropAnswer, func(w *world) { before(w); w.provisionKilled(t) }, (*world).removeKilled, none)
		})
	}
}

func killThenAlone(t *testing.T, before func(*world)) {
	t.Helper()
	for k := 1; ; k++ {
		w := newWorld(t)
		before(w)
		if !w.kill(t, k, cindertest.DropAnswer, (*world).provisionKilled) {
			return
		}
		for i := range killed {
			w.wantCode(t, w.batchOf(t, contract.Provision, []int{i}, nil), contract.ExitDone)
		}
		w.served(t, killed)
	}
}
