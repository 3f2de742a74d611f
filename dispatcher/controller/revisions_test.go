package controller_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// revisionOf is the revision that a claim's PV names, or nil.
func (w *world) revisionOf(claim *corev1.PersistentVolumeClaim) *appsv1.ControllerRevision {
	name := w.PVOf(claim).Annotations[contract.AnnRevision]
	for _, r := range fakecluster.List[*appsv1.ControllerRevision](w) {
		if r.Namespace+"/"+r.Name == name {
			return r
		}
	}
	return nil
}

// twoRevisions leaves a volume of an older config and one of the newer.
func (w *world) twoRevisions() (first, second *corev1.PersistentVolumeClaim) {
	w.SetUpGold(fakecluster.Works)
	w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
	w.Start()
	first = w.provisioned("first")
	w.UpdateConfig("image", newer)
	w.Advance(time.Second) // the caches have no common order
	return first, w.provisioned("second")
}

func (w *world) mustHaveRevisions(n int, when string) {
	w.T.Helper()
	if got := len(fakecluster.List[*appsv1.ControllerRevision](w)); got != n {
		w.T.Errorf("%d revisions %s, want %d", got, when, n)
	}
}

func (w *world) marked(r *appsv1.ControllerRevision) func() bool {
	return func() bool {
		now := fakecluster.Get[*appsv1.ControllerRevision](w, r.Namespace, r.Name)
		return now != nil && now.Annotations[config.AnnUnusedSince] != ""
	}
}

// lastVolumeGoes deletes the last volume of a revision, and waits until the revision is marked.
func (w *world) lastVolumeGoes(claim *corev1.PersistentVolumeClaim) *appsv1.ControllerRevision {
	w.T.Helper()
	r := w.revisionOf(claim)
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("its volume has gone", time.Minute, func() bool { return w.PVOf(claim) == nil })
	w.Until("its Jobs have expired and it is marked", 2*time.Hour, w.marked(r))
	return r
}

func TestAnUnusedRevisionIsCollectedAnHourAfterItsLastUse(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.Advance(59 * time.Minute)
		w.mustHaveRevisions(2, "before the hour is over")
		w.Until("the old revision is collected", 2*time.Minute, func() bool {
			return fakecluster.Get[*appsv1.ControllerRevision](w, fakecluster.ConfigNamespace, old.Name) == nil
		})
		if w.revisionOf(second) == nil {
			w.T.Error("the revision in use went as well")
		}
	})
}

func TestRevisionOfItsOwnIsNeverCollected(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"))
		w.Advance(30 * 24 * time.Hour)
		w.mustHaveRevisions(2, "while volumes name them")
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("the volume is deleted under its old revision", time.Minute, func() bool { return w.PVOf(first) == nil })
	})
}

func TestTheNewestRevisionStaysAsLongAsItsConfigMap(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(24 * time.Hour)
		w.mustHaveRevisions(1, "while the ConfigMap is there")
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"))
		w.Advance(59 * time.Minute)
		w.mustHaveRevisions(1, "before the hour is over")
		w.Advance(2 * time.Minute)
		w.mustHaveRevisions(0, "after ConfigMap and volumes have gone")
	})
}

func TestAMarkedRevisionThatIsUsedAgainLosesItsMark(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.Advance(50 * time.Minute)
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(second), func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, contract.AnnRevision, fakecluster.ConfigNamespace+"/"+old.Name)
		})
		w.Until("the mark goes", time.Minute, func() bool { return !w.marked(old)() })
		w.Advance(24 * time.Hour)
		w.mustHaveRevisions(2, "while one is named and the other is the newest")
	})
}

func TestAConfigThatComesBackTakesTheMarkOffBeforeItServes(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.Advance(59 * time.Minute)
		w.UpdateConfig("image", fakecluster.GoldImage)
		third := w.provisioned("third")
		if r := w.revisionOf(third); r == nil || r.Name != old.Name || w.marked(old)() {
			w.T.Errorf("the claim was served under %v", r)
		}
		w.Advance(24 * time.Hour)
		if w.revisionOf(third) == nil {
			w.T.Error("the revision of a volume was collected")
		}
	})
}

// A PV appears between mark and delete, and the caches have not heard of it.
func TestRevisionOfItsOwnIsKeptForAPVThatNoCacheShows(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.Server.DelayWatches("persistentvolumes", true)
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(second), func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, contract.AnnRevision, fakecluster.ConfigNamespace+"/"+old.Name)
		})
		w.Advance(3 * time.Hour)
		w.mustHaveRevisions(2, "while a PV that no cache shows names one")
		w.Server.DelayWatches("persistentvolumes", false)
		w.Advance(3 * time.Hour)
		if w.revisionOf(second) == nil || w.marked(old)() {
			w.T.Error("the revision went, or is marked, although a PV names it")
		}
	})
}

func TestARevisionThatChangedSinceItWasLookedAtStays(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.Server.DelayWatches("controllerrevisions", true)
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*appsv1.ControllerRevision](w, fakecluster.ConfigNamespace, old.Name), func(r *appsv1.ControllerRevision) {
			delete(r.Annotations, config.AnnUnusedSince)
		})
		w.Advance(2 * time.Hour)
		w.mustHaveRevisions(2, "while the cache still shows the mark")
	})
}

func TestNeitherShortensNorForgets(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		w.lastVolumeGoes(first)
		w.Advance(30 * time.Minute)
		w.Stop()
		w.Advance(10 * time.Minute)
		w.Start()
		w.Advance(19 * time.Minute)
		w.mustHaveRevisions(2, "before the hour is over")
		w.Advance(2 * time.Minute)
		w.mustHaveRevisions(1, "after it")
	})
}

// A marked revision may be collected at any moment: no Job names it before the mark is seen to be
// off.
func TestNothingIsLaunchedUnderAMarkedRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"))
		w.lastVolumeGoes(claim)
		made := len(w.CreatedJobs(""))
		w.Server.DelayWatches("controllerrevisions", true)
		w.CreateConfig("gold", "gold")
		w.CreateClaim("again")
		w.Advance(10 * time.Second)
		if n := len(w.CreatedJobs("")); n != made {
			w.T.Errorf("%d Jobs while the cache shows the mark", n-made)
		}
		w.Server.DelayWatches("controllerrevisions", false)
		w.Until("the claim is bound", time.Minute, w.IsBound("again"))
		w.Advance(24 * time.Hour)
		w.mustHaveRevisions(1, "while a volume names it")
	})
}
