package controller_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const newer = "localhost/gold:v2"

func TestRule09AVolumeIsDeletedAfterItsConfigAndItsClassHaveGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		w.run(time.Hour)
		drop(w, admin, get[*corev1.ConfigMap](w, home, "gold"))
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		w.run(time.Minute)
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		if w.runs[1].image != gold {
			w.t.Errorf("it was deleted by %s", w.runs[1].image)
		}
	})
}

func TestRule09AnUndoRunsAfterItsConfigAndItsClassHaveGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		drop(w, admin, get[*corev1.ConfigMap](w, home, "gold"))
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		w.run(time.Hour)
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}

func TestItem03AChangedConfigServesTheNextClaimAndDeletesNoOlderVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[newer] = image{does: works}
		w.start()
		first := w.settled("first")
		w.reconfigure("image", newer)
		second := w.settled("second")
		drop(w, user, first)
		w.until("the first has gone", time.Minute, func() bool { return w.pvOf(first) == nil })
		drop(w, user, second)
		w.until("nothing is left", time.Minute, w.empty)
		want := []struct{ image, claim string }{{gold, "first"}, {newer, "second"}, {gold, "first"}, {newer, "second"}}
		for i, r := range w.runs {
			if r.image != want[i].image || r.request.Name != want[i].claim {
				w.t.Errorf("run %d: %s %s by %s, want %v", i, r.verb, r.request.Name, r.image, want[i])
			}
		}
		if n := len(every[*appsv1.ControllerRevision](w)); n != 2 {
			w.t.Errorf("%d revisions, want 2", n)
		}
	})
}

func TestRule10AChangedConfigIsTriedAtOnceAfterAnUndoWhereOneIsNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		code int32
		want []string
	}{
		"nothing was made":              {78, []string{"provision", "provision"}},
		"something may have been made":  {75, []string{"provision", "delete", "provision"}},
		"refused, perhaps halfway":      {65, []string{"provision", "delete", "provision"}},
		"credentials, nothing was made": {77, []string{"provision", "provision"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(always(fails(test.code, "")), "max-attempts", "1")
				w.images[newer] = image{does: works}
				w.start()
				w.claim("data")
				w.run(3 * time.Minute)
				w.reconfigure("image", newer)
				w.until("the claim is bound", 10*time.Second, w.bound("data"))
				w.mustRun(test.want...)
				if n := len(w.runs); n == 3 && (w.runs[1].image != gold || !w.runs[1].request.Undo) {
					w.t.Errorf("the undo ran %s", w.runs[1].image)
				}
				w.until("every record is released", time.Hour, func() bool { return len(w.records()) == 0 })
			})
		})
	}
}

func TestRule09AnAdministratorMovesAVolumeToAnotherRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[newer] = image{does: works}
		w.start()
		first := w.settled("first")
		w.reconfigure("image", newer)
		second := w.settled("second")
		edit(w, admin, w.pvOf(first), func(pv *corev1.PersistentVolume) {
			annotate(pv, contract.AnnRevision, w.pvOf(second).Annotations[contract.AnnRevision])
		})
		drop(w, user, first)
		w.until("the first has gone", time.Minute, func() bool { return w.pvOf(first) == nil })
		if r := w.runs[2]; r.image != newer || r.verb != contract.Delete {
			w.t.Errorf("%s ran by %s", r.verb, r.image)
		}
	})
}

func TestAnExistingRevisionIsUsedAsItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.settled("first")
		w.settled("second")
		if n := len(every[*appsv1.ControllerRevision](w)); n != 1 {
			w.t.Errorf("%d revisions of one content", n)
		}
	})
}

func TestItem03AFaultyEditIsToldAndTheLastGoodRevisionStaysInUse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.settled("first")
		w.reconfigure("image", newer, "timeout", "soon")
		w.settled("second")
		if w.runs[1].image != gold {
			w.t.Errorf("the second claim was served by %s", w.runs[1].image)
		}
		if n := len(w.events.said("ConfigMap/gold", "")); n == 0 {
			w.t.Error("nobody told the administrator")
		}
		w.images[newer] = image{does: works}
		w.reconfigure("timeout", "5m")
		w.settled("third")
		if w.runs[2].image != newer {
			w.t.Errorf("the third claim was served by %s", w.runs[2].image)
		}
	})
}
