package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A Job is deleted while its run ends. It vanishes with its record, and is held until the claim
// shows the result: claims were bound without it.
func TestTheResultOfADeletedJobIsShown(t *testing.T) {
	for name, setUp := range map[string]func(*world){
		"the image writes the PV":      func(w *world) { w.SetUpGold(fakecluster.Works) },
		"the dispatcher writes the PV": (*world).setUpDescribed,
	} {
		for _, after := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, time.Second, 1100 * time.Millisecond} {
			t.Run(name+", "+after.String(), func(t *testing.T) {
				inWorld(t, func(w *world) {
					setUp(w)
					w.Start()
					claim := w.CreateClaim("data")
					w.Advance(after)
					for _, job := range fakecluster.List[*batchv1.Job](w) {
						fakecluster.Delete(w, fakecluster.User, job)
					}
					w.Until("the claim is bound", time.Minute, w.IsBound("data"))
					w.Advance(5 * time.Second)
					w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
					w.Until("the record is released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
					fakecluster.Delete(w, fakecluster.User, claim)
					w.Until("nothing is left", 2*time.Hour, w.Empty)
				})
			})
		}
	}
}
