package plugin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

func TestAClaimThatIsBoundIsOK(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		c.Advance(time.Minute)
		r := why(c, claim.UID)
		if r.State != plugin.OK || r.Cause != "" || len(r.Runs) != 1 || r.Volume == "" || r.Config != "" && r.Revision == "" {
			c.T.Errorf("got %+v", r)
		}
		lastLines(c, r, 3)
	})
}

// Nothing is wrong with a claim that only waits for a pod.
func TestAClaimThatWaitsForAPodIsWorking(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		c.CreateServiceAccount("true")
		c.CreateConfig("gold", "gold")
		claim := c.CreateClaim("data")
		r := why(c, claim.UID)
		if r.State != plugin.Working || !strings.Contains(lastLines(c, r, 1), "a pod uses the claim") {
			c.T.Errorf("got %+v", r)
		}
	})
}

// All else is as it is to be, and nothing happens.
func TestThatNoDispatcherLeadsIsTheCause(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		claim := c.CreateClaim("data")
		c.Advance(time.Minute)
		r := asIs(c, false, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Report, error) {
			return d.Explain(ctx, claim.UID)
		})
		const idle = "no dispatcher leads, so no volume is created, expanded or deleted"
		if last := lastLines(c, r, 3); r.State != plugin.Failed || !strings.Contains(last, idle) || !strings.Contains(last, "flex-system get pods") {
			c.T.Errorf("state %s:\n%s", r.State, last)
		}
	})
}

// Between the upgrade of the dispatcher and that of the plugin, the plugin asked to install the dispatcher
// that was at work.
func TestARecordOfANewerDispatcherAsksForTheNewerPlugin(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitTempFail, ""))
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		c.Stop()
		for _, job := range fakecluster.List[*batchv1.Job](c) {
			fakecluster.Update(c, "a newer dispatcher", job, func(job *batchv1.Job) {
				job.Annotations[jobs.AnnRecord] = strings.Replace(job.Annotations[jobs.AnnRecord], `{"version":1,`, `{"version":2,`, 1)
			})
		}
		r := why(c, claim.UID)
		lastLines(c, r, 3)
		if r.Reason != reason.RecordTooNew || !strings.Contains(r.Cause, "is of a newer release than this program") ||
			!strings.HasPrefix(r.Remedy, "install the kubectl flex of the dispatcher's release") || !strings.Contains(r.Remedy, "docs/upgrade.md#back") {
			c.T.Errorf("got %+v", r)
		}
	})
}

// What is said of a failure is what its event says.
func TestACauseIsThatOfTheEvent(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitCapacity, "claim: the pool has 10 MiB left"))
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		r := why(c, claim.UID)
		c.MustEmitSome("PersistentVolumeClaim/data", r.Reason, r.Cause)
	})
}

// What is said of a volume that has data never touches its claim.
func TestTheRemedyOfAnExpandKeepsTheClaim(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Expand {
				return fakecluster.Exit{Code: contract.ExitBadRequest, Message: "claim: at most 1Gi"}
			}
			return fakecluster.Works(r)
		})
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		fakecluster.Update(c, fakecluster.User, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		c.Advance(20 * time.Second)
		r := why(c, claim.UID)
		if r.State != plugin.Failed || r.Reason != "VolumeResizeFailed" || !strings.Contains(r.Remedy, "request a size") || strings.Contains(r.Remedy, "delete") {
			c.T.Errorf("got %+v", r)
		}
	})
}

// The claim no longer exists, and its PersistentVolume is named.
func TestAFailedDeleteIsExplainedByItsPersistentVolume(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete {
				return fakecluster.Exit{Code: contract.ExitNoPerm, Message: "login refused"}
			}
			return fakecluster.Works(r)
		})
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		r := why(c, claim.UID)
		if r.State != plugin.Failed || r.Reason != "VolumeFailedDelete" || !strings.Contains(r.Remedy, "kubectl flex retry pv/pvc-"+string(claim.UID)) {
			c.T.Errorf("got %+v", r)
		}
		lastLines(c, r, 3)
	})
}

func TestARetryIsAskedForOnTheNewestJob(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Script(fakecluster.Fails(contract.ExitNoPerm, "claim: login refused"), fakecluster.Works))
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (string, error) {
			r, err := d.Explain(ctx, claim.UID)
			if err != nil {
				return "", err
			}
			return d.Retry(ctx, r)
		})
		c.Until("it is bound", 20*time.Second, c.IsBound("data"))
	})
}

func TestTheStatusGroupsWhatIsInTheWay(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitNoPerm, "claim: login refused"))
		c.CreateClass("silver", corev1.PersistentVolumeReclaimDelete)
		c.Start()
		c.CreateClaim("one")
		c.CreateClaim("two")
		c.Advance(20 * time.Second)
		s := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Status, error) { return d.Status(ctx) })
		gold, silver := s.Classes[0], s.Classes[1]
		if gold.Name != "gold" || gold.Pending != 2 || len(gold.Causes) != 1 || gold.Causes[0].Claims != 2 || !strings.Contains(gold.Causes[0].Remedy, "Secret") {
			c.T.Errorf("got %+v", gold)
		}
		if silver.Problem == "" || silver.Pending != 0 {
			c.T.Errorf("got %+v", silver)
		}
	})
}

// A claim whose node has no room goes back to the scheduler, which may select the same node again. It
// looks like one that waits for its pod.
func TestAClaimThatFindsNoNodeWithRoomHasFailed(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := claimWithoutRoom(c)
		c.Advance(5 * time.Second)
		failed := 0
		for range 60 {
			c.Advance(time.Second)
			if r := why(c, claim.UID); r.State == plugin.Failed {
				mustSay(c, r, plugin.Failed, "ProvisioningFailed", "has less than 1Gi free", "create it with a smaller request")
				failed++
			}
		}
		if failed < 50 {
			c.T.Errorf("in %d seconds of 60 it is said to have failed", failed)
		}
	})
}

// The scheduler takes its time to select a node again. Meanwhile the newest Job is that of the undo, and
// the claim has a pod.
func TestAClaimThatWasReturnedForLackOfRoomSaysSoAfterTheUndo(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := claimWithoutRoom(c)
		c.Choices = nil
		c.Until("the run is undone", time.Minute, func() bool { return len(c.RunsOf(contract.Delete)) == 1 })
		c.Advance(5 * time.Second)
		r := why(c, claim.UID)
		if mustSay(c, r, plugin.Failed, "ProvisioningFailed", "has less than 1Gi free", "create it with a smaller request"); r.Next != "the scheduler selects a node again" {
			c.T.Errorf("next is %q", r.Next)
		}
	})
}

// claimWithoutRoom creates a claim whose only node has no room for it, and returns it after the first run.
func claimWithoutRoom(c *fakecluster.Cluster) *corev1.PersistentVolumeClaim {
	c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: failsTo(contract.Provision, fakecluster.Exit{Code: contract.ExitCapacity, Message: "claim: the node node-1 has less than 1Gi free"})}
	claim := claimOnNode(c)
	c.Until("the node has no room", time.Minute, func() bool { return len(c.RunsOf(contract.Provision)) == 1 })
	return claim
}

// claimOnNode creates a claim for which the scheduler selects the only node, where its runs go.
func claimOnNode(c *fakecluster.Cluster) *corev1.PersistentVolumeClaim {
	c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
	c.CreateServiceAccount("true")
	c.CreateConfig("gold", "gold", "run-on", "selected-node")
	c.CreateNode("node-1")
	c.Choices = []string{"node-1"}
	c.Start()
	return c.CreateClaim("data")
}

// No user has to do anything: the run is repeated, here after the claim was returned from its node.
func TestAClaimWhoseRunADrainEvictedIsWorking(t *testing.T) {
	for name, drains := range map[string]bool{"a drain": true, "a preemption": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(c *fakecluster.Cluster) {
				claim := claimAtWork(c)
				if c.Choices = nil; drains {
					fakecluster.Update(c, fakecluster.Admin, fakecluster.Get[*corev1.Node](c, "", "node-1"), func(n *corev1.Node) { n.Spec.Unschedulable = true })
				}
				pod := c.RunningPods()[0]
				fakecluster.Update(c, fakecluster.Admin, pod, func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
				})
				fakecluster.Delete(c, fakecluster.Admin, pod)
				for range 9 {
					c.Advance(time.Second)
					mustSay(c, why(c, claim.UID), plugin.Working)
				}
				c.Until("the undo has ended", time.Minute, func() bool { return !drains || len(c.RunsOf(contract.Delete)) == 1 && len(c.RunningPods()) == 0 })
				r := why(c, claim.UID)
				if mustSay(c, r, plugin.Working, "Disrupted"); drains != (r.Next == "the scheduler selects a node again") {
					c.T.Errorf("next is %q", r.Next)
				}
			})
		})
	}
}

// claimAtWork creates a claim whose run is at work on its node.
func claimAtWork(c *fakecluster.Cluster) *corev1.PersistentVolumeClaim {
	c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Second}
	claim := claimOnNode(c)
	c.Until("it is at work", time.Minute, func() bool { return len(c.RunningPods()) == 1 })
	return claim
}

// refused is what a container prints whose account may not write PersistentVolumes.
const refused = `flex pv: the API server refuses the PersistentVolume: 403, persistentvolumes is forbidden: User "system:serviceaccount:flex-provisioner:gold" cannot create resource "persistentvolumes" in API group ""`

// The storage is well, so "check the storage" would lead astray.
func TestTheRemedyForAnAccountThatMayNotWritePVsIsTheBinding(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitTempFail, refused))
		unbind(c)
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it failed", time.Minute, func() bool { return len(c.RunsOf(contract.Provision)) == 1 })
		c.Advance(500 * time.Millisecond)
		if r := why(c, claim.UID); !strings.Contains(r.Remedy, "--clusterrole=flex-provisioner-volumes --serviceaccount=flex-provisioner:writer") || strings.Contains(r.Remedy, "storage") {
			c.T.Errorf("the remedy is %q", r.Remedy)
		}
	})
}

// What a container says to administrators only is on its Job, which they may read.
func TestTheOutputOfARunIsPartOfItsCause(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitConfig, "the directory /srv is not on btrfs"))
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it failed", time.Minute, func() bool { return len(c.RunsOf(contract.Provision)) == 1 })
		c.Advance(5 * time.Second)
		r := why(c, claim.UID)
		mustSay(c, r, plugin.Failed, "Its output: the directory /srv is not on btrfs", "correct what the output names", "kubectl flex retry data")
		if strings.Contains(r.Cause, "finds its output") || !strings.HasPrefix(r.Cause, "BadConfig (exit code 78) of the Job ") {
			c.T.Errorf("the cause is %q", r.Cause)
		}
	})
}

// What Kubernetes says of a pod is not called the output of its container, and is said once.
func TestWhatKubernetesSaysIsNoOutput(t *testing.T) {
	const said = "Usage of EmptyDir volume exceeds the limit"
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works, "max-attempts", "1")
		c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("its pod runs", time.Minute, func() bool { return len(c.RunningPods()) == 1 })
		fakecluster.Update(c, fakecluster.Kubelet, c.RunningPods()[0], func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", said
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: contract.Container, ContainerID: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}},
			}}
		})
		c.Advance(5 * time.Second)
		r := why(c, claim.UID)
		if mustSay(c, r, plugin.Failed, said); strings.Contains(r.Cause, "output: "+said) || strings.Count(r.Cause, said) != 1 {
			c.T.Errorf("the cause is %q", r.Cause)
		}
	})
}
