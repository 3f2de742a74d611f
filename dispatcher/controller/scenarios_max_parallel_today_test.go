package controller_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The storage is overloaded, and the administrator lowers max-parallel: that holds for volumes of
// older revisions, too.
func TestMaxParallelOfTodayBoundsOldRevisions(t *testing.T) {
	deletesOneByOne(t, func(w *world) { w.UpdateConfig("max-parallel", "1") })
}

// The last valid revision of a faulty ConfigMap stays in use for deletes, too.
func TestMaxParallelHoldsAfterAnInvalidEdit(t *testing.T) {
	deletesOneByOne(t, func(w *world) {
		w.UpdateConfig("max-parallel", "1")
		w.CreateClaim("one-more") // stores the revision
		w.Until("all are bound", time.Minute, func() bool { return len(w.Storage) == 11 && w.AllBound() })
		w.UpdateConfig("timeout", "soon")
	})
}

// deletesOneByOne checks that after an edit of the config the volumes that eight runs at a time have
// made are deleted by one.
func deletesOneByOne(t *testing.T, edit func(*world)) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.SetUpGold(fakecluster.Works, "max-parallel", "8")
		w.Start()
		for i := range 10 {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
		}
		w.Until("all are bound", time.Minute, func() bool { return len(w.Storage) == 10 && w.AllBound() })
		edit(w)
		w.Advance(time.Minute)
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		unfinished := 0
		w.Until("nothing is left", 5*time.Minute, func() bool {
			unfinished = max(unfinished, len(w.RunningPods()))
			return w.Empty()
		})
		if unfinished != 1 {
			w.T.Errorf("%d pods at a time, want 1", unfinished)
		}
	})
}
