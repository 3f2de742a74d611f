package controller_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// revisionOf is the revision that a claim's PV names, or nil.
func (w *world) revisionOf(claim *corev1.PersistentVolumeClaim) *appsv1.ControllerRevision {
	name := w.pvOf(claim).Annotations[contract.AnnRevision]
	for _, r := range every[*appsv1.ControllerRevision](w) {
		if r.Namespace+"/"+r.Name == name {
			return r
		}
	}
	return nil
}

// twoRevisions leaves a volume of an older config and one of the newer.
func (w *world) twoRevisions() (first, second *corev1.PersistentVolumeClaim) {
	w.goldClass(works)
	w.images[newer] = image{does: works}
	w.start()
	first = w.settled("first")
	w.reconfigure("image", newer)
	return first, w.settled("second")
}

func (w *world) mustHaveRevisions(n int, when string) {
	w.t.Helper()
	if got := len(every[*appsv1.ControllerRevision](w)); got != n {
		w.t.Errorf("%d revisions %s, want %d", got, when, n)
	}
}

func (w *world) marked(r *appsv1.ControllerRevision) func() bool {
	return func() bool {
		now := get[*appsv1.ControllerRevision](w, r.Namespace, r.Name)
		return now != nil && now.Annotations[config.AnnUnusedSince] != ""
	}
}

// lastVolumeGoes deletes the last volume of a revision, and waits until the revision is marked.
func (w *world) lastVolumeGoes(claim *corev1.PersistentVolumeClaim) *appsv1.ControllerRevision {
	w.t.Helper()
	r := w.revisionOf(claim)
	drop(w, user, claim)
	w.until("its volume has gone", time.Minute, func() bool { return w.pvOf(claim) == nil })
	w.until("its Jobs have expired and it is marked", 2*time.Hour, w.marked(r))
	return r
}

func TestItem03AnUnusedRevisionIsCollectedAnHourAfterItsLastUse(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.run(59 * time.Minute)
		w.mustHaveRevisions(2, "before the hour is over")
		w.until("the old revision is collected", 2*time.Minute, func() bool {
			return get[*appsv1.ControllerRevision](w, home, old.Name) == nil
		})
		if w.revisionOf(second) == nil {
			w.t.Error("the revision in use went as well")
		}
	})
}

func TestItem03ARevisionThatAVolumeNamesIsNeverCollected(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		drop(w, admin, get[*corev1.ConfigMap](w, home, "gold"))
		w.run(30 * 24 * time.Hour)
		w.mustHaveRevisions(2, "while volumes name them")
		drop(w, user, first)
		w.until("the volume is deleted under its old revision", time.Minute, func() bool { return w.pvOf(first) == nil })
	})
}

func TestItem03TheNewestRevisionStaysAsLongAsItsConfigMap(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		drop(w, user, claim)
		w.run(24 * time.Hour)
		w.mustHaveRevisions(1, "while the ConfigMap is there")
		drop(w, admin, get[*corev1.ConfigMap](w, home, "gold"))
		w.run(59 * time.Minute)
		w.mustHaveRevisions(1, "before the hour is over")
		w.run(2 * time.Minute)
		w.mustHaveRevisions(0, "after ConfigMap and volumes have gone")
	})
}

func TestItem03AMarkedRevisionThatIsUsedAgainLosesItsMark(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.run(50 * time.Minute)
		edit(w, admin, w.pvOf(second), func(pv *corev1.PersistentVolume) { annotate(pv, contract.AnnRevision, home+"/"+old.Name) })
		w.until("the mark goes", time.Minute, func() bool { return !w.marked(old)() })
		w.run(24 * time.Hour)
		w.mustHaveRevisions(2, "while one is named and the other is the newest")
	})
}

func TestItem03AConfigThatComesBackTakesTheMarkOffBeforeItServes(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.run(59 * time.Minute)
		w.reconfigure("image", gold)
		third := w.settled("third")
		if r := w.revisionOf(third); r == nil || r.Name != old.Name || w.marked(old)() {
			w.t.Errorf("the claim was served under %v", r)
		}
		w.run(24 * time.Hour)
		if w.revisionOf(third) == nil {
			w.t.Error("the revision of a volume was collected")
		}
	})
}

// A PV appears between mark and delete, and the caches have not heard of it.
func TestRule09ThePVThatNoCacheShowsKeepsItsRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.server.hold("persistentvolumes", true)
		edit(w, admin, w.pvOf(second), func(pv *corev1.PersistentVolume) { annotate(pv, contract.AnnRevision, home+"/"+old.Name) })
		w.run(3 * time.Hour)
		w.mustHaveRevisions(2, "while a PV that no cache shows names one")
		w.server.hold("persistentvolumes", false)
		w.run(3 * time.Hour)
		if w.revisionOf(second) == nil || w.marked(old)() {
			w.t.Error("the revision went, or is marked, although a PV names it")
		}
	})
}

func TestItem03ARevisionThatChangedSinceItWasLookedAtStays(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.server.hold("controllerrevisions", true)
		edit(w, admin, get[*appsv1.ControllerRevision](w, home, old.Name), func(r *appsv1.ControllerRevision) {
			delete(r.Annotations, config.AnnUnusedSince)
		})
		w.run(2 * time.Hour)
		w.mustHaveRevisions(2, "while the cache still shows the mark")
	})
}

func TestItem03ARestartNeitherHurriesNorForgetsACollection(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		w.lastVolumeGoes(first)
		w.run(30 * time.Minute)
		w.stop()
		w.run(10 * time.Minute)
		w.start()
		w.run(19 * time.Minute)
		w.mustHaveRevisions(2, "before the hour is over")
		w.run(2 * time.Minute)
		w.mustHaveRevisions(1, "after it")
	})
}

// A marked revision may be collected at any moment: no Job names it before the mark is seen to be off.
func TestItem03NothingIsLaunchedUnderAMarkedRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		drop(w, admin, get[*corev1.ConfigMap](w, home, "gold"))
		w.lastVolumeGoes(claim)
		made := len(w.made(""))
		w.server.hold("controllerrevisions", true)
		w.config("gold", "gold")
		w.claim("again")
		w.run(10 * time.Second)
		if n := len(w.made("")); n != made {
			w.t.Errorf("%d Jobs while the cache shows the mark", n-made)
		}
		w.server.hold("controllerrevisions", false)
		w.until("the claim is bound", time.Minute, w.bound("again"))
		w.run(24 * time.Hour)
		w.mustHaveRevisions(1, "while a volume names it")
	})
}
