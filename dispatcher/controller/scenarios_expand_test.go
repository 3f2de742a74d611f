package controller_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

const (
	inProgress = corev1.PersistentVolumeClaimControllerResizeInProgress
	infeasible = corev1.PersistentVolumeClaimControllerResizeInfeasible
	nodePends  = corev1.PersistentVolumeClaimNodeResizePending
	resizing   = corev1.PersistentVolumeClaimResizing
	fsPends    = corev1.PersistentVolumeClaimFileSystemResizePending
	refused    = corev1.PersistentVolumeClaimControllerResizeError
)

// requestSize sets what the claim data requests.
func (w *world) requestSize(size string) {
	fakecluster.Update(w, fakecluster.User, w.Claim("data"), func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// hasSize returns a condition: the claim data has a size, and its status says nothing of an
// expansion any more.
func (w *world) hasSize(size string) func() bool {
	return func() bool {
		s := w.Claim("data").Status
		return s.Capacity.Storage().String() == size && len(s.Conditions) == 0 && len(s.AllocatedResourceStatuses) == 0
	}
}

// showsResize returns a condition: the status of the claim data says how far its expansion has
// come, with one condition.
func (w *world) showsResize(status corev1.ClaimResourceStatus, condition corev1.PersistentVolumeClaimConditionType) func() bool {
	return func() bool {
		s := w.Claim("data").Status
		return s.AllocatedResourceStatuses[corev1.ResourceStorage] == status && len(s.Conditions) == 1 && s.Conditions[0].Type == condition
	}
}

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

func asCSI(pv *corev1.PersistentVolume) {
	pv.Spec.NFS, pv.Spec.CSI = nil, &corev1.CSIPersistentVolumeSource{Driver: "rbd.csi.ceph.com", VolumeHandle: pv.Name}
}

// making is an image that writes PVs so, and works otherwise.
func making(so func(*corev1.PersistentVolume)) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		if r.Verb != contract.Provision {
			return fakecluster.Works(r)
		}
		r.CreateVolume()
		r.WritePV(so)
		return fakecluster.Exit{}
	}
}

// expanding plays one step after the other for the runs of expand, then works.
func expanding(steps ...func(*fakecluster.Run) fakecluster.Exit) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		if r.Verb == contract.Expand && r.Number <= len(steps) {
			return steps[r.Number-1](r)
		}
		return fakecluster.Works(r)
	}
}

func TestAVolumeWithoutAFileSystemOfANodeIsExpandedAtOnce(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"NFS":   func(*corev1.PersistentVolumeClaim) {},
		"Block": func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(fakecluster.Works)
				if name == "Block" {
					w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: making(asISCSI)}
				}
				w.Start()
				w.CreateClaim("data", change)
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.requestSize("2Gi")
				w.Until("the claim says so", time.Minute, w.showsResize(inProgress, resizing))
				if s := w.Claim("data"); s.Status.AllocatedResources.Storage().String() != "2Gi" ||
					s.Annotations[contract.AnnResizer] != contract.ProvisionerName || s.Status.Capacity.Storage().String() != "1Gi" {
					w.T.Errorf("the claim says %+v", s)
				}
				w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
				w.MustRun("provision", "expand")
				if r := w.Runs[1]; r.Request.Size != 2<<30 || r.PV.Spec.Capacity.Storage().String() != "1Gi" || r.Request.Name != "data" {
					w.T.Errorf("the expand was asked for %+v", r.Request)
				}
				w.MustEmit(onData, "Resizing", 1, "2Gi", "image "+fakecluster.GoldImage)
				w.MustEmit(onData, "VolumeResizeSuccessful", 1, "2Gi")
				w.Advance(time.Hour)
				w.MustRun("provision", "expand")
				if n := len(w.HeldRecords()); n != 0 {
					w.T.Errorf("%d Jobs are held for nothing", n)
				}
			})
		})
	}
}

func TestTheKubeletExpandsTheFileSystemOfALocalVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(making(asLocal))
		w.Start()
		claim := w.provisioned("data")
		w.requestSize("2Gi")
		w.Until("the kubelet is asked", time.Minute, w.showsResize(nodePends, fsPends))
		w.Advance(time.Hour)
		if got := w.PVOf(claim).Spec.Capacity.Storage().String(); got != "2Gi" || w.Claim("data").Status.Capacity.Storage().String() != "1Gi" {
			w.T.Errorf("the PV has %s, the claim %+v", got, w.Claim("data").Status)
		}
		w.MustEmit(onData, "FileSystemResizeRequired", 1, "kubelet")
		w.Mounted["data"] = true
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
		w.MustRun("provision", "expand")
	})
}

func TestAFileSystemThatNothingExpandsIsReportedUntilAPersonHasExpandedIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(making(asISCSI))
		w.Start()
		claim := w.provisioned("data")
		w.Mounted["data"] = true
		w.requestSize("2Gi")
		w.Until("the claim says so", time.Minute, w.showsResize(nodePends, fsPends))
		w.Advance(24 * time.Hour)
		pv := w.PVOf(claim)
		remedy := fmt.Sprintf("kubectl annotate --overwrite pv %s %s=2Gi", pv.Name, contract.AnnFileSystem)
		w.MustEmit(onData, "FileSystemResizeRequired", 1, "resize2fs", remedy)
		s := w.Claim("data").Status
		if s.Capacity.Storage().String() != "1Gi" || !strings.Contains(s.Conditions[0].Message, remedy) {
			w.T.Errorf("the claim says %+v", s)
		}
		fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnFileSystem, "2Gi") })
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
		w.requestSize("3Gi")
		w.Until("what was grown by hand is too small again", time.Minute, w.showsResize(nodePends, fsPends))
	})
}

func TestTheCapacityIsWhatTheStorageReallyHas(t *testing.T) {
	for name, line := range map[string]string{
		"a quantity": `{"uid":"%s","code":0,"capacity":"4Gi"}`,
		"bytes":      `{"uid":"%s","code":0,"capacity":4294967296,"pending":"nothing"}`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(expanding(func(r *fakecluster.Run) fakecluster.Exit {
					r.ExpandVolume()
					return fakecluster.Exit{Code: 0, Message: strings.Repeat("noise\n", 300) + fmt.Sprintf(line, r.Request.UID) + "\nclaim: rounded to 4Gi\n"}
				}))
				w.Start()
				claim := w.provisioned("data")
				w.requestSize("3Gi")
				w.Until("the claim has more than it asks for", time.Minute, w.hasSize("4Gi"))
				if got := w.PVOf(claim).Spec.Capacity.Storage().String(); got != "4Gi" {
					w.T.Errorf("the PV has %s", got)
				}
				w.MustEmit(onData, "VolumeResizeSuccessful", 1, "rounded to 4Gi")
			})
		})
	}
}

func TestAnExpandThatMakesTooLittleHasFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(expanding(func(r *fakecluster.Run) fakecluster.Exit {
			return fakecluster.Exit{Code: 0, Message: `{"uid":"` + r.Request.UID + `","code":0,"capacity":"2Gi"}`}
		}))
		w.Start()
		claim := w.provisioned("data")
		w.requestSize("3Gi")
		w.Until("the claim has its size", time.Minute, w.hasSize("3Gi"))
		w.MustEmit(onData, "VolumeResizeFailed", 1, "2Gi", "3Gi")
		w.MustRun("provision", "expand", "expand")
		if got := w.PVOf(claim).Spec.Capacity.Storage().String(); got != "3Gi" {
			w.T.Errorf("the PV has %s", got)
		}
	})
}

func TestASizeThatCannotBeIsRefusedAndTheUserRecovers(t *testing.T) {
	for code, runs := range map[int32][]string{65: {"provision", "expand", "expand", "expand"}, 73: {"provision", "expand", "expand", "expand", "expand", "expand"}} {
		t.Run(strconv.Itoa(int(code)), func(t *testing.T) { recoversFrom(t, code, runs) })
	}
}

func recoversFrom(t *testing.T, code int32, runs []string) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Expand && r.Request.Size > 10<<30 {
				return fakecluster.Exit{Code: code, Message: "claim: at most 10Gi"}
			}
			return fakecluster.Works(r)
		})
		w.Start()
		w.provisioned("data")
		w.requestSize("100Gi")
		w.Until("the claim says so", time.Minute, w.showsResize(infeasible, refused))
		w.MustEmit(onData, "VolumeResizeFailed", 1, "at most 10Gi")
		if s := w.Claim("data").Status; s.AllocatedResources.Storage().String() != "100Gi" || !strings.Contains(s.Conditions[0].Message, "at most 10Gi") {
			w.T.Errorf("the claim says %+v", s)
		}
		w.Advance(25 * time.Minute)
		w.MustRun(runs...) // the storage may have changed
		w.Until("the claim says so again", time.Minute, w.showsResize(infeasible, refused))
		w.requestSize("2Gi")
		w.Until("the claim has what it asks for now", 10*time.Second, w.hasSize("2Gi"))
		if got := w.Claim("data").Status.AllocatedResources.Storage().String(); got != "2Gi" {
			w.T.Errorf("%s is counted for its quota", got)
		}
	})
}

func TestAnExpandThatFailsIsTriedAgainLaterAndLater(t *testing.T) {
	inWorld(t, func(w *world) {
		again := fakecluster.Fails(75, "claim: busy")
		w.SetUpExpandableGold(expanding(again, again, again))
		w.Start()
		w.provisioned("data")
		w.requestSize("2Gi")
		w.Until("it failed thrice", time.Minute, func() bool { return len(w.RunsOf(contract.Expand)) == 3 })
		w.Until("the claim still says that it grows", time.Second, w.showsResize(inProgress, resizing))
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
		w.MustEmit(onData, "VolumeResizeFailed", 3, "busy", "next attempt in")
		if got := w.pauses(contract.Expand); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			w.T.Errorf("pauses %v", got)
		}
	})
}

// A run that failed may have made the volume larger all the same: it is brought to that size first.
func TestARequestThatIsLoweredDuringAnExpandShrinksNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(expanding(func(r *fakecluster.Run) fakecluster.Exit {
			r.ExpandVolume()
			w.requestSize("2Gi")
			return fakecluster.Exit{Code: 75}
		}))
		w.Start()
		w.provisioned("data")
		w.requestSize("3Gi")
		w.Until("the claim has what it asked for at first", time.Minute, w.hasSize("3Gi"))
	})
}

func TestARequestThatIsRaisedDuringAnExpandIsExpandedAfterwards(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(expanding(func(r *fakecluster.Run) fakecluster.Exit {
			w.requestSize("5Gi")
			return fakecluster.Works(r)
		}))
		w.Start()
		w.provisioned("data")
		w.requestSize("3Gi")
		w.Until("the claim has its size", time.Minute, w.hasSize("5Gi"))
		w.MustRun("provision", "expand", "expand")
	})
}

func TestMaxAttemptsHoldForExpandToo(t *testing.T) {
	inWorld(t, func(w *world) {
		again := fakecluster.Fails(75, "")
		w.SetUpExpandableGold(expanding(again, again), "max-attempts", "2")
		w.Start()
		w.provisioned("data")
		w.requestSize("2Gi")
		w.Advance(20 * time.Minute)
		w.requestSize("3Gi") // the storage may have 2Gi already
		w.Advance(20 * time.Minute)
		w.MustRun("provision", "expand", "expand")
		w.MustEmitSome(onData, "Stalled", "2")
		if said := w.Events.About(onData, "VolumeResizeFailed"); len(said) != 2 || strings.Contains(said[1].Note, "next attempt") {
			w.T.Errorf("told was %+v", said)
		}
		w.retryNow(contract.Expand)
		w.Until("the claim has its size", time.Minute, w.hasSize("3Gi"))
		w.MustRun("provision", "expand", "expand", "expand", "expand")
	})
}
