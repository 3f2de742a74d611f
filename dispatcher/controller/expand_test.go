package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const (
	inProgress = corev1.PersistentVolumeClaimControllerResizeInProgress
	infeasible = corev1.PersistentVolumeClaimControllerResizeInfeasible
	nodePends  = corev1.PersistentVolumeClaimNodeResizePending
	resizing   = corev1.PersistentVolumeClaimResizing
	fsPends    = corev1.PersistentVolumeClaimFileSystemResizePending
	refused    = corev1.PersistentVolumeClaimControllerResizeError
)

// asLocal, asISCSI and the like make an image that writes such PVs.
func asLocal(pv *corev1.PersistentVolume) {
	pv.Spec.NFS, pv.Spec.Local = nil, &corev1.LocalVolumeSource{Path: "/srv/" + pv.Name}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}},
	}}}}
}

func asISCSI(pv *corev1.PersistentVolume) {
	pv.Spec.NFS, pv.Spec.ISCSI = nil, &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.9:3260", IQN: "iqn.2010-10.org:v"}
}

// making is an image that writes PVs so, and works otherwise.
func making(so func(*corev1.PersistentVolume)) func(*run) ending {
	return func(r *run) ending {
		if r.verb != contract.Provision {
			return works(r)
		}
		r.make()
		r.write(so)
		return ending{}
	}
}

// expanding plays one step after the other for the runs of expand, then works.
func expanding(steps ...func(*run) ending) func(*run) ending {
	return func(r *run) ending {
		if r.verb == contract.Expand && r.number <= len(steps) {
			return steps[r.number-1](r)
		}
		return works(r)
	}
}

func TestItem05AVolumeWithoutAFileSystemOfANodeGrowsAtOnce(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"NFS":   func(*corev1.PersistentVolumeClaim) {},
		"Block": func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.growingClass(works)
				if name == "Block" {
					w.images[gold] = image{does: making(asISCSI)}
				}
				w.start()
				w.claim("data", change)
				w.until("the claim is bound", time.Minute, w.bound("data"))
				w.ask("2Gi")
				w.until("the claim says so", time.Minute, w.says(inProgress, resizing))
				if s := w.now("data"); s.Status.AllocatedResources.Storage().String() != "2Gi" ||
					s.Annotations[contract.AnnResizer] != contract.ProvisionerName || s.Status.Capacity.Storage().String() != "1Gi" {
					w.t.Errorf("the claim says %+v", s)
				}
				w.until("the claim has its size", time.Minute, w.has("2Gi"))
				w.mustRun("provision", "expand")
				if r := w.runs[1]; r.request.Size != 2<<30 || r.pv.Spec.Capacity.Storage().String() != "1Gi" || r.request.Name != "data" {
					w.t.Errorf("the expand was asked for %+v", r.request)
				}
				w.mustTell(onData, "Resizing", 1, "2Gi", "image "+gold)
				w.mustTell(onData, "VolumeResizeSuccessful", 1, "2Gi")
				w.run(time.Hour)
				w.mustRun("provision", "expand")
				if n := len(w.records()); n != 0 {
					w.t.Errorf("%d Jobs are held for nothing", n)
				}
			})
		})
	}
}

func TestItem05TheKubeletGrowsTheFileSystemOfALocalVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(making(asLocal))
		w.start()
		claim := w.settled("data")
		w.ask("2Gi")
		w.until("the kubelet is asked", time.Minute, w.says(nodePends, fsPends))
		w.run(time.Hour)
		if got := w.pvOf(claim).Spec.Capacity.Storage().String(); got != "2Gi" || w.now("data").Status.Capacity.Storage().String() != "1Gi" {
			w.t.Errorf("the PV has %s, the claim %+v", got, w.now("data").Status)
		}
		w.mustTell(onData, "FileSystemResizeRequired", 1, "kubelet")
		w.mounted["data"] = true
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
		w.mustRun("provision", "expand")
	})
}

func TestItem05AFileSystemThatNobodyGrowsIsSaidToBeSmallUntilAPersonHasGrownIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(making(asISCSI))
		w.start()
		claim := w.settled("data")
		w.mounted["data"] = true
		w.ask("2Gi")
		w.until("the claim says so", time.Minute, w.says(nodePends, fsPends))
		w.run(24 * time.Hour)
		pv := w.pvOf(claim)
		remedy := fmt.Sprintf("kubectl annotate --overwrite pv %s %s=2Gi", pv.Name, contract.AnnFileSystem)
		w.mustTell(onData, "FileSystemResizeRequired", 1, "resize2fs", remedy)
		s := w.now("data").Status
		if s.Capacity.Storage().String() != "1Gi" || !strings.Contains(s.Conditions[0].Message, remedy) {
			w.t.Errorf("the claim says %+v", s)
		}
		edit(w, admin, pv, func(pv *corev1.PersistentVolume) { annotate(pv, contract.AnnFileSystem, "2Gi") })
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
		w.ask("3Gi")
		w.until("what was grown by hand is too small again", time.Minute, w.says(nodePends, fsPends))
	})
}

func TestItem05TheCapacityIsWhatTheStorageReallyHas(t *testing.T) {
	for name, line := range map[string]string{
		"a quantity": `{"uid":"%s","code":0,"capacity":"4Gi"}`,
		"bytes":      `{"uid":"%s","code":0,"capacity":4294967296,"pending":"nothing"}`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.growingClass(expanding(func(r *run) ending {
					r.grow()
					return ending{0, strings.Repeat("noise\n", 300) + fmt.Sprintf(line, r.request.UID) + "\nclaim: rounded to 4Gi\n"}
				}))
				w.start()
				claim := w.settled("data")
				w.ask("3Gi")
				w.until("the claim has more than it asks for", time.Minute, w.has("4Gi"))
				if got := w.pvOf(claim).Spec.Capacity.Storage().String(); got != "4Gi" {
					w.t.Errorf("the PV has %s", got)
				}
				w.mustTell(onData, "VolumeResizeSuccessful", 1, "rounded to 4Gi")
			})
		})
	}
}

func TestItem05AnExpandThatMakesTooLittleHasFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(expanding(func(r *run) ending {
			return ending{0, `{"uid":"` + r.request.UID + `","code":0,"capacity":"2Gi"}`}
		}))
		w.start()
		claim := w.settled("data")
		w.ask("3Gi")
		w.until("the claim has its size", time.Minute, w.has("3Gi"))
		w.mustTell(onData, "VolumeResizeFailed", 1, "2Gi", "3Gi")
		w.mustRun("provision", "expand", "expand")
		if got := w.pvOf(claim).Spec.Capacity.Storage().String(); got != "3Gi" {
			w.t.Errorf("the PV has %s", got)
		}
	})
}

func TestItem05ASizeThatCannotBeIsRefusedAndTheUserRecovers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(func(r *run) ending {
			if r.verb == contract.Expand && r.request.Size > 10<<30 {
				return ending{65, "claim: at most 10Gi"}
			}
			return works(r)
		})
		w.start()
		w.settled("data")
		w.ask("100Gi")
		w.until("the claim says so", time.Minute, w.says(infeasible, refused))
		w.mustTell(onData, "VolumeResizeFailed", 1, "at most 10Gi")
		if s := w.now("data").Status; s.AllocatedResources.Storage().String() != "100Gi" || !strings.Contains(s.Conditions[0].Message, "at most 10Gi") {
			w.t.Errorf("the claim says %+v", s)
		}
		w.run(25 * time.Minute)
		w.mustRun("provision", "expand", "expand", "expand") // the storage may have changed: every 10 minutes
		w.until("the claim says so again", time.Minute, w.says(infeasible, refused))
		w.ask("2Gi")
		w.until("the claim has what it asks for now", 10*time.Second, w.has("2Gi"))
		if got := w.now("data").Status.AllocatedResources.Storage().String(); got != "2Gi" {
			w.t.Errorf("%s is counted for its quota", got)
		}
	})
}

func TestItem05AnExpandThatFailsIsTriedAgainLaterAndLater(t *testing.T) {
	inWorld(t, func(w *world) {
		again := fails(75, "claim: busy")
		w.growingClass(expanding(again, again, again))
		w.start()
		w.settled("data")
		w.ask("2Gi")
		w.until("it failed thrice", time.Minute, func() bool { return len(w.ran(contract.Expand)) == 3 })
		w.until("the claim still says that it grows", time.Second, w.says(inProgress, resizing))
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
		w.mustTell(onData, "VolumeResizeFailed", 3, "busy", "next attempt in")
		if got := w.pauses(contract.Expand); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			w.t.Errorf("pauses %v", got)
		}
	})
}

// A run that failed may have made the volume larger all the same: it is brought to that size first.
func TestItem05ARequestThatIsLoweredWhileTheVolumeGrowsIsNoShrinking(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(expanding(func(r *run) ending {
			r.grow()
			w.ask("2Gi")
			return ending{75, ""}
		}))
		w.start()
		w.settled("data")
		w.ask("3Gi")
		w.until("the claim has what it asked for at first", time.Minute, w.has("3Gi"))
	})
}

func TestARequestThatIsRaisedWhileTheVolumeGrowsIsServedAfterwards(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(expanding(func(r *run) ending {
			w.ask("5Gi")
			return works(r)
		}))
		w.start()
		w.settled("data")
		w.ask("3Gi")
		w.until("the claim has its size", time.Minute, w.has("5Gi"))
		w.mustRun("provision", "expand", "expand")
	})
}

func TestMaxAttemptsHoldForExpandToo(t *testing.T) {
	inWorld(t, func(w *world) {
		again := fails(75, "")
		w.growingClass(expanding(again, again), "max-attempts", "2")
		w.start()
		w.settled("data")
		w.ask("2Gi")
		w.run(time.Hour)
		w.mustRun("provision", "expand", "expand")
		w.mustSay(onData, "Stalled", "2")
		if said := w.events.said(onData, "VolumeResizeFailed"); len(said) != 2 || strings.Contains(said[1].note, "next attempt") {
			w.t.Errorf("told was %+v", said)
		}
		w.ask("3Gi")
		w.until("the claim has its size", time.Minute, w.has("3Gi"))
	})
}
