package controller_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

const newer = "localhost/gold:v2"

func TestRevisionOfItsOwnDeletesAVolumeWithoutConfigAndClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Advance(time.Hour)
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"))
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if w.Runs[1].Image != fakecluster.GoldImage {
			w.T.Errorf("it was deleted by %s", w.Runs[1].Image)
		}
	})
}

func TestRevisionOfItsOwnUndoesWithoutConfigAndClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"))
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.Advance(time.Hour)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

func TestRevisionOfItsOwnDeletesWhatAnOlderConfigMade(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		first := w.provisioned("first")
		w.UpdateConfig("image", newer)
		second := w.provisioned("second")
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("the first has gone", time.Minute, func() bool { return w.PVOf(first) == nil })
		fakecluster.Delete(w, fakecluster.User, second)
		w.Until("nothing is left", time.Minute, w.Empty)
		want := []struct{ image, claim string }{{fakecluster.GoldImage, "first"}, {newer, "second"}, {fakecluster.GoldImage, "first"}, {newer, "second"}}
		for i, r := range w.Runs {
			if r.Image != want[i].image || r.Request.Name != want[i].claim {
				w.T.Errorf("run %d: %s %s by %s, want %v", i, r.Verb, r.Request.Name, r.Image, want[i])
			}
		}
		if n := len(fakecluster.List[*appsv1.ControllerRevision](w)); n != 2 {
			w.T.Errorf("%d revisions, want 2", n)
		}
	})
}

func TestUndoBeforeAnotherAttemptUnderAChangedConfig(t *testing.T) {
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
				w.SetUpGold(fakecluster.Always(fakecluster.Fails(test.code, "")), "max-attempts", "1")
				w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
				w.Start()
				w.CreateClaim("data")
				w.Advance(3 * time.Minute)
				w.UpdateConfig("image", newer)
				w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
				w.MustRun(test.want...)
				if n := len(w.Runs); n == 3 && (w.Runs[1].Image != fakecluster.GoldImage || !w.Runs[1].Request.Undo) {
					w.T.Errorf("the undo ran %s", w.Runs[1].Image)
				}
				w.Until("every record is released", time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
			})
		})
	}
}

func TestRevisionOfItsOwnCanBeChangedByAnAdministrator(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		first := w.provisioned("first")
		w.UpdateConfig("image", newer)
		second := w.provisioned("second")
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(first), func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, contract.AnnRevision, w.PVOf(second).Annotations[contract.AnnRevision])
		})
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("the first has gone", time.Minute, func() bool { return w.PVOf(first) == nil })
		if r := w.Runs[2]; r.Image != newer || r.Verb != contract.Delete {
			w.T.Errorf("%s ran by %s", r.Verb, r.Image)
		}
	})
}

func TestAnExistingRevisionIsUsedAsItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.provisioned("first")
		w.provisioned("second")
		if n := len(fakecluster.List[*appsv1.ControllerRevision](w)); n != 1 {
			w.T.Errorf("%d revisions of one content", n)
		}
	})
}

func TestAnInvalidEditIsReportedAndTheLastGoodRevisionStaysInUse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.provisioned("first")
		w.UpdateConfig("image", newer, "timeout", "soon")
		w.Advance(time.Second)
		w.provisioned("second")
		if w.Runs[1].Image != fakecluster.GoldImage {
			w.T.Errorf("the second claim was served by %s", w.Runs[1].Image)
		}
		if n := len(w.Events.About("ConfigMap/gold", "")); n == 0 {
			w.T.Error("nobody told the administrator")
		}
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.UpdateConfig("timeout", "5m")
		w.provisioned("third")
		if w.Runs[2].Image != newer {
			w.T.Errorf("the third claim was served by %s", w.Runs[2].Image)
		}
	})
}

func TestARevisionWithoutItsLabelIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		r := w.revisionOf(w.provisioned("first"))
		label := func(value string) {
			fakecluster.Update(w, fakecluster.Admin, r, func(r *appsv1.ControllerRevision) { r.Labels[config.LabelManagedBy] = value })
		}
		label("me")
		w.CreateClaim("data")
		w.Advance(2 * time.Minute)
		w.MustEmitSome(onData, "RevisionDamaged", r.Namespace+"/"+r.Name, config.LabelManagedBy+"="+config.ManagedBy)
		label(config.ManagedBy)
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
	})
}

// The event told users of a damage that there was not, if the watch was 50 ms late.
func TestARevisionThatTheWatchDoesNotShowYetIsNotReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.Server.DelayWatches("controllerrevisions", true)
		w.CreateClaim("data")
		w.Advance(8 * time.Second)
		w.MustEmit(onData, "RevisionDamaged", 0)
		w.Server.DelayWatches("controllerrevisions", false)
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
		w.MustEmit(onData, "RevisionDamaged", 0)
	})
}
