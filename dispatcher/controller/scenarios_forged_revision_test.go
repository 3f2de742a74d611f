package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The image of another class, with another login. A thief of a token of the class gold wants it to
// run for a PV of the thief's.
const victimImage = "localhost/silver:v1"

// setUpVictim leaves a volume of the class silver, and returns the config revision that its PV
// names.
func (w *world) setUpVictim(gold func(*fakecluster.Run) fakecluster.Exit) string {
	w.T.Helper()
	w.SetUpExpandableGold(gold)
	w.Images[victimImage] = fakecluster.Image{Does: fakecluster.Works}
	w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, fakecluster.Expandable)
	w.CreateConfig("silver", "silver", "image", victimImage, "verbs", "provision,delete,expand")
	w.Start()
	claim := w.CreateClaim("victim", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("silver") })
	w.Until("the victim is bound", time.Minute, w.IsBound("victim"))
	return w.PVOf(claim).Annotations[contract.AnnRevision]
}

// mustSpareVictim fails the test if the image with the other login has done more than serve its own
// claim. That it was not even launched is an invariant of the cluster.
func (w *world) mustSpareVictim() {
	w.T.Helper()
	for _, r := range w.Runs {
		if r.Image == victimImage && r.Request.Name != "victim" {
			w.T.Errorf("%s ran for the claim %s: %s", r.Image, r.Request.Name, r.Verb)
		}
	}
}

// names returns a change of a PV: it names a config revision.
func names(revision *string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnRevision, *revision) }
}

// The run's own pod writes the PV, or whoever has its token. The claim is bound, since Kubernetes
// looks at no annotation; it is deleted, asks for more, and everything that is known of the run
// expires meanwhile. Nothing ever runs with the other login.
func TestRevisionOfItsOwnIsNotWhatAForgedPVNames(t *testing.T) {
	var revision string
	retained := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	unheld := func(pv *corev1.PersistentVolume) { pv.Finalizers = nil }
	for name, test := range map[string]struct {
		code   int32
		change func(*corev1.PersistentVolume)
	}{
		"success":                         {0, func(*corev1.PersistentVolume) {}},
		"failure":                         {75, func(*corev1.PersistentVolume) {}},
		"nothing made":                    {78, func(*corev1.PersistentVolume) {}},
		"retained":                        {0, retained},
		"nothing made, without finalizer": {78, unheld},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				revision = w.setUpVictim(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
					r.CreateVolume()
					r.WritePV(names(&revision), test.change)
					return fakecluster.Exit{Code: test.code}
				}))
				claim := w.CreateClaim("data")
				w.Until("its PV is in doubt", 5*time.Minute, func() bool { return w.Events.About(aboutClaim("data"), "VolumeInDoubt") != nil })
				w.MustEmitSome(aboutClaim("data"), "VolumeInDoubt", revision, w.Runs[1].PV.Annotations[contract.AnnRevision], "kubectl annotate --overwrite pv", "stolen")
				w.Advance(time.Minute)
				if w.IsBound("data")() {
					fakecluster.Update(w, fakecluster.User, w.Claim("data"), func(claim *corev1.PersistentVolumeClaim) {
						claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
					})
				}
				w.Advance(3 * time.Hour)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(3 * time.Hour)
				w.mustSpareVictim()
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume was deleted although its PV is in doubt")
				}
			})
		})
	}
}

// The claim is deleted before anybody has looked at the PV, and an administrator later sets the
// policy of the retained PV to Delete. Only the record says that the PV is not of its own revision.
func TestRevisionOfItsOwnIsOnRecordOfARetainedPVWhoseClaimIsDeletedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var revision string
		var claim *corev1.PersistentVolumeClaim
		revision = w.setUpVictim(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(names(&revision), func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			fakecluster.Delete(w, fakecluster.User, claim)
			return fakecluster.Exit{}
		}))
		claim = w.CreateClaim("data")
		w.Advance(3 * time.Hour)
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		w.Advance(3 * time.Hour)
		w.mustSpareVictim()
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the volume was deleted although its PV is in doubt")
		}
	})
}

// The image of a class with the policy Retain need not serve the verb delete. The thief writes the
// policy Delete, and the record of the run was once released since nothing could undo it: then
// nothing contradicted the PV.
func TestRevisionOfItsOwnIsHeldWhereTheImageCannotDelete(t *testing.T) {
	inWorld(t, func(w *world) {
		revision := w.setUpVictim(fakecluster.Works)
		w.Images["localhost/bronze:v1"] = fakecluster.Image{Does: func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(names(&revision), func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			})
			return fakecluster.Exit{}
		}}
		w.CreateClass("bronze", corev1.PersistentVolumeReclaimRetain)
		w.CreateConfig("bronze", "bronze", "image", "localhost/bronze:v1", "verbs", "provision")
		claim := w.CreateClaim("data", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("bronze") })
		w.Until("its PV is in doubt", 5*time.Minute, func() bool { return w.Events.About(aboutClaim("data"), "VolumeInDoubt") != nil })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(24 * time.Hour)
		w.mustSpareVictim()
		pv := w.PVOf(claim)
		if pv == nil {
			w.T.Fatal("the PV in doubt was deleted")
		}
		fakecluster.Delete(w, fakecluster.Admin, pv)
		w.Until("the PV is gone, as the event promises", time.Hour, func() bool { return w.PVOf(claim) == nil })
		w.Advance(3 * time.Hour)
		w.mustSpareVictim()
	})
}

// An administrator corrects a config under which a run has failed. The Job of that run is kept
// longer than the Job of the run that has made the volume, which an administrator deletes. The volume
// is deleted with its claim all the same. An administrator may also move the PV to the present revision.
func TestRevisionOfItsOwnIsThatOfTheRunThatHasMadeTheVolume(t *testing.T) {
	for name, code := range map[string]int32{"nothing made": 78, "failure": 75} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Fails(code, "")))
				w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
				w.Start()
				claim := w.CreateClaim("data")
				w.Advance(20 * time.Second)
				w.UpdateConfig("image", newer)
				w.Until("the claim is bound", 20*time.Minute, w.IsBound("data"))
				w.Until("its records are released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
				fakecluster.Delete(w, fakecluster.Admin,
					fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, "provision-"+string(claim.UID)+"-2"))
				w.Advance(30 * time.Minute)
				w.MustEmit(aboutClaim("data"), "VolumeInDoubt", 0)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("its volume is deleted", 10*time.Minute, func() bool { return w.PVOf(claim) == nil && !w.Storage[string(claim.UID)] })
			})
		})
	}
}

// An image that writes a wrong revision by mistake leaves a volume of its own. Each remedy of the
// event works: where the PV is deleted, its volume stays.
func TestAPVThatNamesAnotherRevisionGoesByTheRemediesOfItsEvent(t *testing.T) {
	for name, test := range map[string]struct {
		remedy func(*world, *corev1.PersistentVolume, string)
		verbs  []string
	}{
		"its own revision is named": {func(w *world, pv *corev1.PersistentVolume, own string) {
			fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
				fakecluster.Annotate(pv, contract.AnnRevision, own)
			})
		}, []string{"provision", "provision", "delete"}},
		"it is deleted": {func(w *world, pv *corev1.PersistentVolume, _ string) {
			fakecluster.Delete(w, fakecluster.Admin, pv)
			w.Advance(time.Minute)
			job := fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, w.HeldRecords()[0])
			fakecluster.Update(w, fakecluster.Admin, job, func(job *batchv1.Job) { job.Annotations[jobs.AnnForget] = job.Annotations[jobs.AnnUIDs] })
		}, []string{"provision", "provision"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var revision string
				revision = w.setUpVictim(fakecluster.Always(spoils(names(&revision))))
				claim := w.CreateClaim("data")
				w.Until("it is bound", time.Minute, w.IsBound("data"))
				w.Advance(time.Minute)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(3 * time.Hour)
				w.MustRun("provision", "provision")
				test.remedy(w, w.PVOf(claim), w.Runs[1].PV.Annotations[contract.AnnRevision])
				w.Until("PV and record are gone", 10*time.Minute, func() bool { return w.PVOf(claim) == nil && len(w.HeldRecords()) == 0 })
				w.MustRun(test.verbs...)
				if deleted := !w.Storage[string(claim.UID)]; deleted != slices.Contains(test.verbs, "delete") {
					w.T.Errorf("its volume is deleted: %t", deleted)
				}
				w.mustSpareVictim()
			})
		})
	}
}

// A PV that its claim cannot be bound to is retained, and an administrator follows the remedies of
// its event. None of them has the other login delete anything.
func TestRevisionOfItsOwnIsThatOfARetainedPVThatIsTakenBack(t *testing.T) {
	takeBack := func(w *world, pv *corev1.PersistentVolume) {
		fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
	}
	remove := func(w *world, pv *corev1.PersistentVolume) { fakecluster.Delete(w, fakecluster.Admin, pv) }
	for name, test := range map[string]struct {
		abandoned bool
		remedy    func(*world, *corev1.PersistentVolume)
		verbs     []string
	}{
		"its policy is Delete":                  {false, takeBack, []string{"provision", "provision"}},
		"it is deleted":                         {false, remove, []string{"provision", "provision", "provision"}},
		"without a claim, its policy is Delete": {true, takeBack, []string{"provision", "provision"}},
		"without a claim, it is deleted":        {true, remove, []string{"provision", "provision"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var revision string
				forges := spoils(func(pv *corev1.PersistentVolume) {
					tooSmall(pv)
					pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
					fakecluster.Annotate(pv, contract.AnnRevision, revision)
				})
				revision = w.setUpVictim(fakecluster.Script(forges))
				claim := w.CreateClaim("data")
				w.Until("its PV is in doubt", 5*time.Minute, func() bool { return w.Events.About(aboutClaim("data"), "VolumeInDoubt") != nil })
				w.Advance(time.Hour)
				if test.abandoned {
					fakecluster.Delete(w, fakecluster.User, claim)
					w.Advance(time.Hour)
				}
				test.remedy(w, w.PVOf(claim))
				w.Advance(3 * time.Hour)
				w.MustRun(test.verbs...)
				w.mustSpareVictim()
			})
		})
	}
}
