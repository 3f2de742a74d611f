package controller_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// released brings a claim to where it was deleted and its PV is Released, under keep-deleted.
func (w *world) released(keep string) *corev1.PersistentVolumeClaim {
	w.T.Helper()
	w.SetUpGold(fakecluster.Works)
	w.UpdateConfig("keep-deleted", keep)
	w.Start()
	claim := w.provisioned("data")
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("its PV is released", time.Minute, func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
	return claim
}

// mustBeKept fails the test unless the volume of a claim exists, and no delete was launched.
func (w *world) mustBeKept(claim *corev1.PersistentVolumeClaim) {
	w.T.Helper()
	if pv := w.PVOf(claim); pv == nil || pv.DeletionTimestamp != nil || !w.Storage[string(claim.UID)] {
		w.T.Fatal("the volume or its PV was deleted before the time")
	}
	w.MustRun("provision")
}

func TestADeletedVolumeIsKeptForAsLongAsItsConfigSays(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := w.released("168h")
		pv := w.PVOf(claim)
		until := pv.Status.LastPhaseTransitionTime.Add(168 * time.Hour).UTC().Format(time.RFC3339)
		w.Advance(84 * time.Hour)
		w.Stop() // who begins later counts from the same time
		w.Start()
		w.Advance(83 * time.Hour)
		w.mustBeKept(claim)
		w.MustEmitSome("PersistentVolume/"+pv.Name, "VolumeKept", "app/data", "kept until "+until)
		w.Until("nothing is left", 2*time.Hour, w.Empty)
		w.MustRun("provision", "delete")
		if at := w.Runs[1].At; at.Before(pv.Status.LastPhaseTransitionTime.Add(168 * time.Hour)) {
			w.T.Errorf("deleted at %s", at)
		}
	})
}

// The present ConfigMap says it, whatever it said when the volume was made or released.
func TestKeepDeletedIsThatOfThePresentConfig(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := w.released("1h")
		w.UpdateConfig("keep-deleted", "4h")
		w.Advance(2 * time.Hour)
		w.mustBeKept(claim)
		w.mustHaveRevisions(1, "after an edit of keep-deleted")
		w.UpdateConfig("keep-deleted", "a week")
		w.Advance(3 * time.Hour)
		w.mustBeKept(claim)
		w.MustEmitSome("PersistentVolume/"+w.PVOf(claim).Name, "InvalidConfig", "a week", "168h")
		w.UpdateConfig("keep-deleted", "0")
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}

// Without its ConfigMap the revision that made the volume says it.
func TestKeepDeletedIsThatOfTheRevisionWithoutAConfig(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := w.released("4h")
		fakecluster.Delete(w, fakecluster.Admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gold", Namespace: fakecluster.ConfigNamespace}})
		w.Advance(3 * time.Hour)
		w.mustBeKept(claim)
		w.Until("nothing is left", 2*time.Hour, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// kubectl replace --force deletes a ConfigMap, and creates it again. Meanwhile the revision says
// what was said last: it is older than the key, or than its value.
func TestKeepDeletedHoldsWhileTheConfigIsReplaced(t *testing.T) {
	for _, first := range []string{"", "1h"} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Works)
			if first != "" {
				w.UpdateConfig("keep-deleted", first)
			}
			w.Start()
			claim, later := w.provisioned("data"), w.provisioned("later")
			w.UpdateConfig("keep-deleted", "4h", "keep-deleted-limit", "8Gi")
			fakecluster.Delete(w, fakecluster.User, claim)
			w.Advance(2 * time.Hour)
			gold := fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold")
			fakecluster.Delete(w, fakecluster.Admin, gold)
			w.Stop()
			w.Start()
			fakecluster.Delete(w, fakecluster.User, later)
			w.Advance(90 * time.Minute)
			if !w.Storage[string(claim.UID)] || !w.Storage[string(later.UID)] {
				t.Fatal("a volume was deleted while the ConfigMap did not exist")
			}
			delete(gold.Data, "keep-deleted")
			delete(gold.Data, "keep-deleted-limit")
			gold.ResourceVersion, gold.UID = "", ""
			fakecluster.Create(w, fakecluster.Admin, gold)
			w.Until("nothing is left", time.Minute, w.Empty)
			if notes := w.revisionNotes(); !slices.Equal(notes, []string{`{"keep-deleted":"0s"}`}) {
				t.Errorf("the revision notes %s", notes)
			}
		})
	}
}

// revisionNotes returns what the config revisions note of the trash.
func (w *world) revisionNotes() (out []string) {
	for _, r := range fakecluster.List[*appsv1.ControllerRevision](w) {
		if note, has := r.Annotations[config.AnnTrash]; has {
			out = append(out, note)
		}
	}
	return out
}

// A PV that was deleted by hand is kept with its volume: only keep-deleted ends the wait.
func TestAReleasedPVThatIsDeletedByHandIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		claim := w.released("1h")
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Advance(50 * time.Minute)
		if !w.Storage[string(claim.UID)] || !w.heldByUs(claim) {
			w.T.Fatal("the volume was deleted before the time")
		}
		w.Until("nothing is left", time.Hour, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// A generator names a ConfigMap after its content. Until the older ones are pruned, several have the
// label of the class, and none of them the name in the volume's revision.
func TestKeepDeletedIsTheLongestOfAllConfigsOfTheClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		gold := fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold")
		for name, keep := range map[string]string{"gold-b": "1h", "gold-c": "4h"} {
			cm := gold.DeepCopy()
			cm.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: gold.Namespace, Labels: gold.Labels}
			cm.Data["keep-deleted"] = keep
			fakecluster.Create(w, fakecluster.Admin, cm)
		}
		fakecluster.Delete(w, fakecluster.Admin, gold)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(3 * time.Hour)
		w.mustBeKept(claim)
		w.Until("nothing is left", 2*time.Hour, w.Empty)
	})
}

// The API server writes when a Job was created. A leader whose clock is ahead launches a delete too
// early: its pod never starts, and the next one is launched when the time is over. (With a clock
// that is ahead by more than confirmMargin leaves, no run is confirmed at all.)
func TestALeaderWhoseClockIsAheadDeletesNothingBeforeTheTime(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.Ahead = 8 * time.Minute
			claim := w.released("1h")
			due := w.PVOf(claim).Status.LastPhaseTransitionTime.Add(time.Hour)
			if byHand {
				fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
			}
			w.Advance(55 * time.Minute)
			w.Stop() // the next one knows it by the Job that was cancelled
			w.Start()
			w.Advance(4 * time.Minute)
			if !w.Storage[string(claim.UID)] {
				t.Fatal("the volume was deleted before the time")
			}
			if n := len(w.CreatedJobs(contract.Delete)); n != 1 {
				t.Errorf("%d deletes were launched before the time", n)
			}
			w.Until("nothing is left", 2*time.Minute, w.Empty)
			w.MustRun("provision", "delete")
			if at := w.Runs[1].At; at.Before(due) {
				t.Errorf("deleted at %s, and due at %s", at, due)
			}
		})
	}
}

// The API server writes a time in whole seconds, and cuts off the rest.
func TestAClockThatIsALittleAheadLaunchesADeleteOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Ahead = 100 * time.Millisecond
		w.released("1h")
		w.Until("nothing is left", 62*time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if n := len(w.CreatedJobs(contract.Delete)); n != 1 {
			t.Errorf("%d deletes were launched", n)
		}
	})
}

// What an administrator has emptied is deleted now, whatever a clock shows.
func TestALeaderWhoseClockIsAheadEmptiesTheTrash(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Ahead = 8 * time.Minute
		claim := w.released("1h")
		w.Advance(55 * time.Minute)
		if err := admin.Empty(w.Context(), w.Server.Client(fakecluster.Admin), w.PVOf(claim)); err != nil {
			t.Fatal(err)
		}
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}
