package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// settled brings a claim to where it is bound and its record released.
func (w *world) settled(name string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	w.claim(name)
	w.until(name+" is bound", time.Minute, w.bound(name))
	w.until("its record is released", time.Minute, func() bool { return len(w.records()) == 0 })
	return w.now(name)
}

// heldByUs tells whether our finalizer is on a claim's PV.
func (w *world) heldByUs(claim *corev1.PersistentVolumeClaim) bool {
	pv := w.pvOf(claim)
	return pv != nil && slices.Contains(pv.Finalizers, contract.FinalizerStorage)
}

func (w *world) setPolicy(claim *corev1.PersistentVolumeClaim, policy corev1.PersistentVolumeReclaimPolicy) {
	edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
}

func TestRule08ADeletedClaimsVolumeIsDeletedAndThenItsPV(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		w.run(time.Hour) // the provision's Job has expired by then
		pv := w.pvOf(claim)
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		if r := w.runs[1]; r.request.Undo || r.pv.Spec.NFS == nil || r.pv.UID != pv.UID {
			w.t.Errorf("the delete was given %+v", r.pv)
		}
		for _, c := range w.server.history() {
			if c.place == (place{"persistentvolumes", "", pv.Name}) && c.verb == "delete" && c.at.Before(w.runs[1].at) {
				w.t.Error("the PV was deleted before its volume")
			}
		}
		w.mustTell("PersistentVolume/"+pv.Name, "Deleting", 2)
	})
}

func TestRule08ADeleteThatFailsKeepsThePVUntilItSucceeds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(func(r *run) ending {
			if r.verb == contract.Delete && r.number < 4 {
				return ending{75, "in use by an export"}
			}
			return works(r)
		})
		w.start()
		claim := w.settled("data")
		pv := w.pvOf(claim)
		drop(w, user, claim)
		w.until("three deletes failed", time.Minute, func() bool { return len(w.ran(contract.Delete)) == 3 })
		if !w.heldByUs(claim) {
			w.t.Error("the PV was let go before its volume had been deleted")
		}
		w.until("nothing is left", time.Minute, w.empty)
		w.mustTell("PersistentVolume/"+pv.Name, "VolumeFailedDelete", 3, "exit code 75")
		if got := w.pauses(contract.Delete); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			w.t.Errorf("pauses %v", got)
		}
	})
}

func TestRule08ARetainedVolumeStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimRetain)
		w.account("true")
		w.config("gold", "gold")
		w.start()
		claim := w.settled("data")
		if w.heldByUs(claim) {
			w.t.Error("our finalizer is on a PV that is retained")
		}
		drop(w, user, claim)
		w.run(24 * time.Hour)
		if pv := w.pvOf(claim); pv == nil || pv.Status.Phase != corev1.VolumeReleased || !w.storage[string(claim.UID)] {
			w.t.Error("the volume or its PV has gone")
		}
		drop(w, admin, w.pvOf(claim))
		w.until("the PV goes", time.Minute, func() bool { return w.pvOf(claim) == nil })
		w.mustRun("provision")
	})
}

func TestRule08TheFinalizerFollowsThePolicyBothWays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		w.until("the finalizer goes", time.Second, func() bool { return !w.heldByUs(claim) })
		drop(w, user, claim)
		w.run(time.Hour)
		if !w.storage[string(claim.UID)] {
			w.t.Fatal("a retained volume was deleted")
		}
		w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
		w.until("the finalizer comes", time.Second, func() bool { return w.heldByUs(claim) })
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}

func TestRule08APVDeletedWhileItIsBoundIsUntouchedUntilItsClaimGoes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		drop(w, admin, w.pvOf(claim))
		w.run(24 * time.Hour)
		if pv := w.pvOf(claim); pv == nil || pv.DeletionTimestamp == nil || !w.heldByUs(claim) || !w.storage[string(claim.UID)] {
			w.t.Fatal("the PV or its volume was touched")
		}
		w.mustRun("provision")
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}

// An administrator who takes the UID out of the claimRef gives the volume to the next claim of that
// name. The phase says Released until the PV controller has looked again.
func TestRule08AReleasedPVThatIsHandedOnIsNotReclaimed(t *testing.T) {
	for name, uid := range map[string]types.UID{"to whoever has that name": "", "to nobody yet": "99999999-0000-4000-8000-000000000000"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(works)
				w.start()
				claim := w.settled("data")
				w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
				drop(w, user, claim)
				w.until("the PV is released", time.Minute, func() bool { return w.pvOf(claim).Status.Phase == corev1.VolumeReleased })
				if uid == "" {
					edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) {
						pv.Spec.ClaimRef.UID, pv.Spec.PersistentVolumeReclaimPolicy = uid, corev1.PersistentVolumeReclaimDelete
					})
					w.until("the dispatcher looked", time.Second, func() bool { return w.heldByUs(claim) })
				}
				w.run(time.Hour)
				w.mustRun("provision")
				if !w.storage[string(claim.UID)] {
					w.t.Error("the volume has gone")
				}
			})
		})
	}
}

// A populator fills a volume through a claim of its own and then points the PV to the user's.
func TestRule06APVThatWasPointedToAnotherClaimIsReclaimedWithThatOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		prime := w.settled("prime")
		target := w.claim("target", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Hello", Name: "world"}
		})
		edit(w, "populator", w.pvOf(prime), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "target", target.UID
		})
		w.until("the target is bound", time.Minute, w.bound("target"))
		drop(w, "populator", prime)
		w.run(time.Hour)
		w.mustRun("provision")
		drop(w, user, target)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}

// A backup was restored: the claim came back under another UID, and its PV with it.
func TestAPVOfNoRunAtAllIsReclaimedUnderItsRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		w.until("its Job expires", time.Hour, func() bool { return len(every[*batchv1.Job](w)) == 0 })
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
	})
}

func TestRule09WithoutARevisionThePVWaitsAndSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*corev1.PersistentVolume)
		says []string
	}{
		"its name is wrong": {
			func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnRevision] = home + "/gone" },
			[]string{contract.AnnRevision, home + "/gone", "restore that ControllerRevision", "Retain"},
		},
		"its name is lost": {
			func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnRevision) },
			[]string{contract.AnnRevision, "namespace/name", "kubectl get controllerrevisions", "Retain"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(works)
				w.start()
				claim := w.settled("data")
				was := w.pvOf(claim).Annotations[contract.AnnRevision]
				w.run(time.Hour)
				edit(w, admin, w.pvOf(claim), test.lose)
				drop(w, user, claim)
				w.run(time.Hour)
				w.mustRun("provision")
				w.mustSay("PersistentVolume/"+w.pvOf(claim).Name, "RevisionMissing", test.says...)
				edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) { annotate(pv, contract.AnnRevision, was) })
				w.until("nothing is left", time.Minute, w.empty)
			})
		})
	}
}

func TestWhatADeleteWaitsForWakesIt(t *testing.T) {
	for name, test := range map[string]struct {
		reason   string
		up, down func(*world)
	}{
		"the ServiceAccount": {
			"ServiceAccountRefused",
			func(w *world) { w.account("true") },
			func(w *world) { drop(w, admin, get[*corev1.ServiceAccount](w, home, "writer")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(works)
				w.start()
				claim := w.settled("data")
				test.down(w)
				drop(w, user, claim)
				w.run(time.Hour)
				w.mustRun("provision")
				w.mustSay("PersistentVolume/"+contract.PVName(string(claim.UID)), test.reason)
				test.up(w)
				w.until("nothing is left", 10*time.Second, w.empty)
			})
		})
	}
}

func TestAnUndoWaitsForItsServiceAccountToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		drop(w, admin, get[*corev1.ServiceAccount](w, home, "writer"))
		drop(w, user, claim)
		w.run(time.Hour)
		w.mustRun("provision")
		w.account("true")
		w.until("nothing is left", 10*time.Second, w.empty)
	})
}

func TestOfAClassWithRetainAndThenDeleteTheVolumeKeepsItsOwnPolicy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		first := w.settled("first")
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		w.class("gold", corev1.PersistentVolumeReclaimRetain)
		second := w.settled("second")
		drop(w, user, first)
		drop(w, user, second)
		w.run(time.Hour)
		if w.storage[string(first.UID)] || !w.storage[string(second.UID)] {
			w.t.Errorf("left are %v, want the second's only", w.storage)
		}
	})
}

// A cluster may have two dispatchers, each with a provisioner of its own. A PV of the other's is neither
// grown nor deleted, nor is anything told of it.
func TestAnotherProvisionersVolumeIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works)
		w.start()
		claim := w.settled("data")
		edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Annotations[contract.AnnProvisionedBy] = "example.com/another"
		})
		w.ask("2Gi")
		w.run(time.Minute)
		drop(w, user, w.now("data"))
		w.run(time.Hour)
		w.mustRun("provision")
		pv := w.pvOf(claim)
		if pv == nil || !slices.Contains(pv.Finalizers, contract.FinalizerStorage) {
			w.t.Fatalf("the PV is %+v", pv)
		}
		for _, about := range []string{"PersistentVolumeClaim/data", "PersistentVolume/" + pv.Name} {
			for _, e := range w.events.said(about, "") {
				if e.kind == corev1.EventTypeWarning {
					w.t.Errorf("told: %+v", e)
				}
			}
		}
	})
}
