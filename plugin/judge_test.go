package plugin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// mustSay fails the test if a report has another state, or lacks words in its printed lines.
func mustSay(c *fakecluster.Cluster, r *plugin.Report, state plugin.State, words ...string) {
	c.T.Helper()
	text := lastLines(c, r, 100)
	for _, w := range words {
		if !strings.Contains(text, w) {
			c.T.Errorf("it does not say %q", w)
		}
	}
	if r.State != state {
		c.T.Errorf("the state is %s, want %s", r.State, state)
	}
}

// bind makes a claim that is bound, with the shipped dispatcher.
func bind(c *fakecluster.Cluster, image func(*fakecluster.Run) fakecluster.Exit) *corev1.PersistentVolumeClaim {
	c.SetUpExpandableGold(image)
	c.Start()
	claim := c.CreateClaim("data")
	c.Until("it is bound", time.Minute, c.IsBound("data"))
	c.Advance(20 * time.Second)
	return claim
}

func ask(c *fakecluster.Cluster, claim *corev1.PersistentVolumeClaim, size string) {
	fakecluster.Update(c, fakecluster.User, claim, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// failsTo fails one verb.
func failsTo(verb contract.Verb, exit fakecluster.Exit) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		if r.Verb == verb {
			return exit
		}
		return fakecluster.Works(r)
	}
}

func TestALostClaimHasFailed(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, fakecluster.Works)
		pv := c.PVOf(claim)
		fakecluster.Vanish(c, pv)
		fakecluster.Update(c, fakecluster.Admin, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimLost })
		r := why(c, claim.UID)
		mustSay(c, r, plugin.Failed, "ClaimLost", pv.Name+", which does not exist")
		if strings.Contains(r.Remedy, "delete") {
			c.T.Error("the volume may still have data")
		}
	})
}

func TestAClaimThatIsDeletedIsWorking(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, fakecluster.Works)
		fakecluster.Update(c, fakecluster.User, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Finalizers = append(claim.Finalizers, "example.com/kept")
		})
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Working, "Kubernetes deletes the claim")
	})
}

func TestAClaimThatNamesAPersistentVolumeIsNotOKBeforeItIsBound(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		c.Start()
		claim := c.CreateClaim("data", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "archive\x1b[31m" })
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, `"archive\x1b[31m", which does not exist`)
	})
}

// The dispatcher waits after it as after any failure.
func TestARunThatWritesNoPersistentVolumeHasFailed(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(0, ""))
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, "ProvisioningFailed", "did not create the PersistentVolume", "describe job", "attempt")
	})
}

func TestAnExpandToTooSmallASizeHasFailed(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Expand {
				return fakecluster.Exit{Message: fmt.Sprintf(`{"uid":"%s","code":0,"capacity":"1Gi"}`, r.Request.UID)}
			}
			return fakecluster.Works(r)
		})
		ask(c, claim, "2Gi")
		c.Advance(25 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, "VolumeResizeFailed", "the volume has 1Gi afterwards")
	})
}

// What the storage said is the cause, and the last attempt is not the end.
func TestTheLastAttemptIsExplainedByItsFailure(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitNoPerm, "claim: login refused"), "max-attempts", "1")
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, "Stalled", "cause   login refused", "max-attempts", "correct the Secret", "kubectl flex retry data --namespace=app")
	})
}

// A quota or a policy refuses the Job, and no object shows that.
func TestARefusedJobHasFailed(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		c.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if _, is := obj.(*batchv1.Job); is && verb == "create" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "", nil)
			}
			return nil
		})
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		emitted := c.Events.About("PersistentVolumeClaim/data", "LaunchFailed")
		if len(emitted) == 0 {
			c.T.Fatal("no event")
		}
		mustSay(c, why(c, claim.UID), plugin.Working)
		fakecluster.Create(c, fakecluster.Admin, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "refused"}, InvolvedObject: corev1.ObjectReference{UID: claim.UID}, Type: corev1.EventTypeWarning,
			Reason: "LaunchFailed", Message: emitted[0].Note, EventTime: metav1.NewMicroTime(time.Now()),
		})
		r := why(c, claim.UID)
		mustSay(c, r, plugin.Failed, "LaunchFailed", "the API server refused the Job")
		refused := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (error, error) {
			_, refused := d.Retry(ctx, r)
			return refused, nil
		})
		const again = "A write that the API server has refused is tried again every minute"
		if refused == nil || !strings.Contains(refused.Error(), again) {
			c.T.Errorf("a retry without a Job says %v", refused)
		}
		c.Advance(35 * time.Minute) // of repeats, the newest may have been written so long ago
		mustSay(c, why(c, claim.UID), plugin.Failed, "LaunchFailed")
		c.Advance(time.Hour)
		c.Server.Refuse(nil)
		mustSay(c, why(c, claim.UID), plugin.Working)
	})
}

// A container could send people to another remedy than the dispatcher's.
func TestAContainerNamesNoRemedy(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitTempFail, "claim: no answer. Remedy: touch PWNED"))
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		r := why(c, claim.UID)
		mustSay(c, r, plugin.Failed, "check the storage")
		if strings.Contains(r.Remedy, "touch") || !strings.Contains(r.Cause, "exit code 75") {
			c.T.Errorf("the cause is %q, the remedy %q", r.Cause, r.Remedy)
		}
	})
}

// The class in the annotation is any text of the claim's user.
func TestTheClassOfAnAnnotationIsQuoted(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		c.Start()
		claim := c.CreateClaim("data", func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "gold\x1b[31m\nstate   ok"}
		})
		r := why(c, claim.UID)
		mustSay(c, r, plugin.Failed, "does not exist")
		if text := lastLines(c, r, 100); strings.ContainsRune(text, '\x1b') || strings.Contains(text, "\nstate   ok") {
			c.T.Errorf("it prints %q", text)
		}
	})
}

func TestTheFallbackToAnOlderRevisionIsSaid(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		bind(c, fakecluster.Works)
		c.UpdateConfig("maxparallel", "3")
		c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(contract.ExitCapacity, "")}
		claim := c.CreateClaim("more")
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, "warning", "maxparallel", "stays in use")
		s := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Status, error) { return d.Status(ctx) })
		if gold := s.Classes[0]; gold.Problem != "" || !strings.Contains(gold.Warning, "maxparallel") {
			c.T.Errorf("got %+v", gold)
		}
	})
}

// The claim and its PersistentVolume no longer exist, and something may be in the storage.
func TestAFailedUndoOfAClaimThatNoLongerExists(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete {
				return fakecluster.Exit{Code: contract.ExitNoPerm, Message: "login refused"}
			}
			return fakecluster.Halfway(contract.ExitTempFail)(r)
		})
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, "UndoFailed", "kubectl flex retry pv/pvc-"+string(claim.UID))
	})
}

// The newest Job is that of an undo which has succeeded, and the attempt waits after the provision.
func TestARetryAfterAnUndoIsOfTheProvision(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete {
				return fakecluster.Works(r)
			}
			return fakecluster.Halfway(contract.ExitTempFail)(r)
		})
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(6 * time.Minute)
		fakecluster.Update(c, fakecluster.User, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		c.Advance(10 * time.Second)
		ran := len(c.Runs)
		asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (any, error) {
			r, err := d.Explain(ctx, claim.UID)
			if err != nil {
				return nil, err
			}
			if r.Runs[len(r.Runs)-1].Verb != string(contract.Delete) || r.State != plugin.Failed || r.Reason != "ProvisioningFailed" {
				c.T.Errorf("%v, and %+v", c.Verbs(), r)
			}
			return d.Retry(ctx, r)
		})
		c.Advance(2 * time.Second)
		if len(c.Runs) != ran+1 || c.Runs[ran].Verb != contract.Provision {
			c.T.Errorf("%d runs before, now %v", ran, c.Verbs())
		}
	})
}

func TestNothingIsRetriedWhereNothingWaits(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, fakecluster.Works)
		err := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (error, error) {
			r, err := d.Explain(ctx, claim.UID)
			if err != nil {
				return nil, err
			}
			_, refused := d.Retry(ctx, r)
			return refused, nil
		})
		if err == nil || !strings.Contains(err.Error(), "no attempt waits") {
			c.T.Errorf("it says %v", err)
		}
	})
}

// A volume that is kept may be passed on to another claim, which grows.
func TestAVolumeThatWasPassedOnIsExplainedByItsNewClaim(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, failsTo(contract.Expand, fakecluster.Exit{Code: contract.ExitNoPerm, Message: "claim: login refused"}))
		pv := c.PVOf(claim)
		fakecluster.Update(c, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		c.Advance(20 * time.Second)
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		next := c.CreateClaim("next", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = pv.Name })
		fakecluster.Update(c, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.ResourceVersion = "next", "", ""
		})
		c.Until("it is bound", time.Minute, c.IsBound("next"))
		c.Advance(time.Second)
		mustSay(c, why(c, next.UID), plugin.OK)
		ask(c, next, "2Gi")
		c.Advance(20 * time.Second)
		mustSay(c, why(c, next.UID), plugin.Failed, "VolumeResizeFailed", "login refused")
	})
}

// The verdict is unusual for a delete, and has a remedy all the same.
func TestADeleteWithoutRoomHasARemedy(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, failsTo(contract.Delete, fakecluster.Exit{Code: contract.ExitCapacity}))
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		mustSay(c, why(c, claim.UID), plugin.Failed, "exit code 73", "check the storage", "describe job")
	})
}
