package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// provisioned brings a claim to where it is bound and its record released.
func (w *world) provisioned(name string) *corev1.PersistentVolumeClaim {
	w.T.Helper()
	w.CreateClaim(name)
	w.Until(name+" is bound", time.Minute, w.IsBound(name))
	w.Until("its record was released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
	return w.Claim(name)
}

// heldByUs reports whether our finalizer is on a claim's PV.
func (w *world) heldByUs(claim *corev1.PersistentVolumeClaim) bool {
	pv := w.PVOf(claim)
	return pv != nil && slices.Contains(pv.Finalizers, contract.FinalizerStorage)
}

func (w *world) setPolicy(claim *corev1.PersistentVolumeClaim, policy corev1.PersistentVolumeReclaimPolicy) {
	fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
}

// The PV is terminating before a container may delete its volume, so that no claim can be bound to
// it any more, and is removed when the volume no longer exists.
func TestReclaimByPVDeletesTheVolumeAndThenThePV(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Advance(time.Hour) // the provision's Job has expired by then
		pv := w.PVOf(claim)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if r := w.Runs[1]; r.Request.Undo || r.PV.Spec.NFS == nil || r.PV.UID != pv.UID {
			w.T.Errorf("the delete was given %+v", r.PV)
		}
		for _, c := range w.Server.History() {
			ofPV := c.Key == fakecluster.Key{Resource: "persistentvolumes", Name: pv.Name}
			if ofPV && c.Verb == "delete" && c.By == fakecluster.DispatcherName && !c.At.Before(w.Runs[1].At) {
				w.T.Error("the volume was deleted before its PV was terminating")
			}
			if ofPV && c.Now == nil && c.At.Before(w.Runs[1].At) {
				w.T.Error("the PV has gone before its volume")
			}
		}
		w.MustEmit("PersistentVolume/"+pv.Name, "Deleting", 1, "has been deleted")
	})
}

func TestReclaimByPVKeepsThePVUntilTheDeleteSucceeds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete && r.Number < 4 {
				return fakecluster.Exit{Code: 75, Message: "in use by an export"}
			}
			return fakecluster.Works(r)
		})
		w.Start()
		claim := w.provisioned("data")
		pv := w.PVOf(claim)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("three deletes failed", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 3 })
		if !w.heldByUs(claim) {
			w.T.Error("the PV was let go before its volume had been deleted")
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustEmit("PersistentVolume/"+pv.Name, "VolumeFailedDelete", 3, "exit code 75")
		if got := w.pauses(contract.Delete); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			w.T.Errorf("pauses %v", got)
		}
	})
}

func TestReclaimByPVLeavesARetainedVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		claim := w.provisioned("data")
		w.Until("our finalizer leaves a PV that is retained", time.Second, func() bool { return !w.heldByUs(claim) })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(24 * time.Hour)
		if pv := w.PVOf(claim); pv == nil || pv.Status.Phase != corev1.VolumeReleased || !w.Storage[string(claim.UID)] {
			w.T.Error("the volume or its PV has gone")
		}
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("the PV goes", time.Minute, func() bool { return w.PVOf(claim) == nil })
		w.MustRun("provision")
	})
}

func TestReclaimByPVFinalizerFollowsThePolicyBothWays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		w.Until("the finalizer goes", time.Second, func() bool { return !w.heldByUs(claim) })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		if !w.Storage[string(claim.UID)] {
			w.T.Fatal("a retained volume was deleted")
		}
		w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
		w.Until("the finalizer comes", time.Second, func() bool { return w.heldByUs(claim) })
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

func TestReclaimByPVWaitsForTheClaimOfAPVDeletedWhileBound(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Advance(24 * time.Hour)
		if pv := w.PVOf(claim); pv == nil || pv.DeletionTimestamp == nil || !w.heldByUs(claim) || !w.Storage[string(claim.UID)] {
			w.T.Fatal("the PV or its volume was touched")
		}
		w.MustRun("provision")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// An administrator who takes the UID out of the claimRef gives the volume to the next claim of that
// name. The phase says Released until the PV controller has looked again.
func TestReclaimByPVLeavesAReleasedPVThatIsGivenToAnotherClaim(t *testing.T) {
	for name, uid := range map[string]types.UID{"to whoever has that name": "", "to nobody yet": "99999999-0000-4000-8000-000000000000"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("the PV is released", time.Minute, func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
				if uid == "" {
					fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
						pv.Spec.ClaimRef.UID, pv.Spec.PersistentVolumeReclaimPolicy = uid, corev1.PersistentVolumeReclaimDelete
					})
					w.Until("the dispatcher looked", time.Second, func() bool { return w.heldByUs(claim) })
				}
				w.Advance(time.Hour)
				w.MustRun("provision")
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume has gone")
				}
			})
		})
	}
}

// A populator fills a volume through a claim of its own and then points the PV to the user's.
func TestVolumeByNameIsReclaimedWithTheClaimThatItWasGivenTo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		prime := w.provisioned("prime")
		target := w.CreateClaim("target", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Hello", Name: "world"}
		})
		fakecluster.Update(w, "populator", w.PVOf(prime), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "target", target.UID
		})
		w.Until("the target is bound", time.Minute, w.IsBound("target"))
		fakecluster.Delete(w, "populator", prime)
		w.Advance(time.Hour)
		w.MustRun("provision")
		fakecluster.Delete(w, fakecluster.User, target)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// A backup was restored: the claim came back under another UID, and its PV with it.
func TestAPVOfNoRunAtAllIsReclaimedUnderItsRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Until("its Job expires", time.Hour, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}

func TestRevisionOfItsOwnIsMissingSoThePVWaits(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*corev1.PersistentVolume)
		says []string
	}{
		"its name is wrong": {
			func(pv *corev1.PersistentVolume) {
				pv.Annotations[contract.AnnRevision] = fakecluster.ConfigNamespace + "/gone"
			},
			[]string{contract.AnnRevision, fakecluster.ConfigNamespace + "/gone", "restore that ControllerRevision", "Retain"},
		},
		"its name is lost": {
			func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnRevision) },
			[]string{contract.AnnRevision, "namespace/name", "kubectl get controllerrevisions", "Retain"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				was := w.PVOf(claim).Annotations[contract.AnnRevision]
				w.Advance(time.Hour)
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), test.lose)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(time.Hour)
				w.MustRun("provision")
				w.MustEmitSome("PersistentVolume/"+w.PVOf(claim).Name, "RevisionMissing", test.says...)
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnRevision, was) })
				w.Until("nothing is left", time.Minute, w.Empty)
			})
		})
	}
}

func TestWhatADeleteWaitsForResumesIt(t *testing.T) {
	for name, test := range map[string]struct {
		reason   string
		up, down func(*world)
	}{
		"the ServiceAccount": {
			"ServiceAccountRefused",
			func(w *world) { w.CreateServiceAccount("true") },
			func(w *world) {
				fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ServiceAccount](w, fakecluster.ConfigNamespace, "writer"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				test.down(w)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(time.Hour)
				w.MustRun("provision")
				w.MustEmitSome("PersistentVolume/"+contract.PVName(string(claim.UID)), test.reason)
				test.up(w)
				w.Until("nothing is left", 10*time.Second, w.Empty)
			})
		})
	}
}

func TestAnUndoWaitsForItsServiceAccountToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.ServiceAccount](w, fakecluster.ConfigNamespace, "writer"))
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		w.MustRun("provision")
		w.CreateServiceAccount("true")
		w.Until("nothing is left", 10*time.Second, w.Empty)
	})
}
