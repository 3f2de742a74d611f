package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// What a frozen node has not ended in time leaves half of the slots to others, as
// docs/reliability-reference.md says: no law of the simulation takes that for a fault.
func TestOverdueRunsOfAFrozenNodeBreakNoLaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := usualSpec()
		spec.claims = 0
		w := newWorld(t, spec, rand.NewPCG(1, 0))
		defer w.Stop()
		w.setUp()
		create := func() {
			for range 3 {
				w.claims++
				w.createOf(fmt.Sprintf("data-%d", w.claims), "gold")
			}
		}
		w.Cordoned = "node-2"
		image := w.Images[fakecluster.GoldImage]
		slow := image
		slow.Takes = 5 * time.Minute
		w.Images[fakecluster.GoldImage] = slow
		create()
		for range 100 { // no container makes a request
			for _, move := range w.Moves() {
				if !strings.HasPrefix(move.Name, "container ") {
					w.do(move.Name, move.Do)
				}
			}
			w.do("time passes", func() { time.Sleep(time.Second) })
		}
		if n := len(w.AtWork()); n != 3 {
			t.Fatalf("%d containers are at work", n)
		}
		w.Frozen["node-1"] = true
		for _, node := range fakecluster.List[*corev1.Node](w) {
			if node.Name == "node-1" {
				w.setReady(node, corev1.ConditionUnknown)
			}
		}
		w.Cordoned, w.Images[fakecluster.GoldImage] = "", image
		create()
		for range 60 {
			w.doAll()
			w.do("time passes", func() { time.Sleep(time.Minute) })
		}
	})
}
