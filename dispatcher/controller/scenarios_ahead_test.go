package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestAClaimIsServedAheadOfThePVController(t *testing.T) {
	for name, before := range map[string]func(*world){
		"no PV":                  func(*world) {},
		"a PV for another claim": func(w *world) { w.staticPV("1Ti", namesClaim("other")) },
		"a PV of another class":  func(w *world) { w.staticPV("1Ti", ofClass("silver")) },
		"a PV that is bound by UID": func(w *world) {
			w.staticPV("1Ti", namesClaim("other"), namesUID("11111111-2d4a-4c8e-9a57-0b1c2d3e4f50"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.BinderDown = true
				before(w)
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("its PV exists", 10*time.Second, func() bool { return w.PVOf(claim) != nil })
				w.BinderDown = false
				w.Until("its result is shown", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "succeeded" })
				if got := w.Claim("data"); got.Spec.VolumeName != contract.PVName(string(claim.UID)) || got.Annotations[fakecluster.AnnStorageProvisioner] != "" {
					w.T.Errorf("it is bound to %s, with the annotations %v", got.Spec.VolumeName, got.Annotations)
				}
			})
		})
	}
}

func ofClass(class string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = class }
}

func namesUID(uid string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = types.UID(uid) }
}

// Which of the PVs that exist fit a claim only the PV controller knows. It asks for a new one if
// none does.
func TestAClaimThatMayGetAPVThatExistsIsServedWhenThePVControllerHasAskedForAnother(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"of its class, and too small":  func(*corev1.PersistentVolume) {},
		"that names it, and too small": namesClaim("data"),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.BinderDown = true
				w.staticPV("1Mi", change)
				w.Start()
				w.CreateClaim("data")
				w.Advance(time.Hour)
				w.MustCreateNoJob()
				w.BinderDown = false
				w.Until("it is bound", time.Minute, w.IsBound("data"))
			})
		})
	}
}

func TestAClaimWithASelectorIsRefusedOnlyWhenThePVControllerHasAskedForItsVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.BinderDown = true
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "fast"}}
		})
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		if told := w.Events.About("PersistentVolumeClaim/data", ""); len(told) > 0 {
			w.T.Errorf("events: %v", told)
		}
		w.BinderDown = false
		w.Advance(time.Minute)
		w.MustEmitSome(onData, "SelectorNotSupported")
		w.MustCreateNoJob()
	})
}

// The fake PV controller reports a write that comes between its look and its annotation.
func TestAFailureIsShownOnAClaimWhenThePVControllerHasAskedForItsVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(75, "claim: the storage is down")))
		w.AnnotatesAfter = 20 * time.Second
		w.Start()
		w.CreateClaim("data")
		w.Until("two attempts have failed", 15*time.Second, func() bool { return len(w.Runs) == 2 })
		w.MustEmitSome(onData, "ProvisioningFailed", "the storage is down")
		if got := w.Claim("data").Annotations; len(got) > 0 {
			w.T.Errorf("annotations before it is asked for: %v", got)
		}
		w.Until("the failure is shown", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "failed" })
	})
}

// Each version of a claim has events of its own: a problem that was reported before the PV
// controller's annotation was reported twice.
func TestAProblemIsReportedOnceThePVControllerHasAskedForTheVolume(t *testing.T) {
	for name, after := range map[string]time.Duration{"soon": 7 * time.Second, "never": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "max-attempts", "none")
				w.AnnotatesAfter = after
				w.Start()
				w.CreateClaim("data")
				w.Advance(min(after, time.Minute) - time.Second)
				w.MustEmit(onData, "InvalidConfig", 0)
				w.Advance(3 * time.Second)
				w.MustEmit(onData, "InvalidConfig", 1)
			})
		})
	}
}

// With WaitForFirstConsumer the scheduler's choice is enough: the PV controller binds the claim
// only to a PV that names it.
func TestAClaimWithANodeIsServedAheadOfThePVController(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){"of its class": func(*corev1.PersistentVolume) {}, "that names it": namesClaim("data")} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.setUpDelayed(fakecluster.Works)
				w.BinderDown = true
				w.staticPV("1Mi", change)
				w.Start()
				claim := w.CreateClaim("data")
				w.Advance(time.Minute)
				w.MustCreateNoJob()
				fakecluster.Update(w, fakecluster.Scheduler, claim, fakecluster.SelectNode("node-1"))
				w.Advance(time.Minute)
				if served := w.PVOf(claim) != nil; served != (name == "of its class") {
					w.T.Errorf("served: %t", served)
				}
				w.BinderDown = false
				w.Until("it is bound", time.Minute, w.IsBound("data"))
			})
		})
	}
}

func (w *world) setUpDelayed(does func(*fakecluster.Run) fakecluster.Exit) {
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: does}
	w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
	w.CreateServiceAccount("true")
	w.CreateConfig("gold", "gold", "run-on", "selected-node")
	w.CreateNode("node-1")
	w.CreateNode("node-2")
}

// A claim returns to the scheduler by a write on it.
func TestAClaimReturnsToTheSchedulerWhenThePVControllerHasAskedForItsVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setUpDelayed(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Request.SelectedNode == "node-1" && r.Verb == contract.Provision {
				return fakecluster.Exit{Code: contract.ExitCapacity}
			}
			return fakecluster.Works(r)
		})
		w.AnnotatesAfter, w.Choices = 30*time.Second, []string{"node-1", "node-2"}
		w.Start()
		w.CreateClaim("data")
		w.Until("the node has no room", 20*time.Second, func() bool { return len(w.Runs) == 1 })
		w.Advance(5 * time.Second)
		if got := w.Claim("data").Annotations[fakecluster.AnnSelectedNode]; got != "node-1" {
			w.T.Errorf("the node is %q", got)
		}
		w.Until("it is bound", 2*time.Minute, w.IsBound("data"))
	})
}
