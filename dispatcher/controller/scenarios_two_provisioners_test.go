package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestTwoProvisionersShareAConfigNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.CreateNode("node-1")
		w.options.Provisioner = "other.example.com"
		w.Start()
		w.options.Provisioner = "flex-provisioner.io"
		w.Start()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.CreateClaim(name)
		}
		w.Advance(10 * time.Minute)
		bound, cancelled := 0, 0
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if w.IsBound(name)() {
				bound++
			}
		}
		for _, c := range w.Server.History() {
			if _, is := c.Old.(*batchv1.Job); is && c.Verb == "delete" && c.Now != nil {
				cancelled++
			}
		}
		if bound < 5 || cancelled > 0 {
			w.T.Errorf("the dispatcher of another provisioner cancels the Jobs of this one")
		}
	})
}
