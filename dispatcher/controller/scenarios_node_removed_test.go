package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// local writes a PV that says on which node its volume lies, by the node's hostname label.
func local(hostname string) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		if r.Verb != contract.Provision {
			return fakecluster.Works(r)
		}
		r.CreateVolume()
		r.WritePV(func(pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = onHost(hostname)
		})
		return fakecluster.Exit{}
	}
}

func onHost(hostname string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname}},
		},
	}}}}
}

// onNodeThree has a bound claim of the class gold whose volume lies on node-3, which calls itself
// three.
func (w *world) onNodeThree(keys ...string) (*corev1.PersistentVolumeClaim, *corev1.Node) {
	w.chosenClass(local("three"), []string{"node-3"}, append([]string{"run-on", "selected-node"}, keys...)...)
	node := w.CreateNode("node-3", "three")
	w.Start()
	return w.provisioned("data"), node
}

// recordOf returns what a Job that was created records of its first claim.
func recordOf(c fakecluster.Change) jobs.Record {
	job := c.Now.(*batchv1.Job)
	return jobs.RecordOf(job, jobs.UIDs(job)[0])
}

// required is what a Job demands of its node.
func required(c fakecluster.Change) *corev1.NodeSelector {
	affinity := c.Now.(*batchv1.Job).Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func TestADeleteRunsOnTheVolumesNode(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, _ := w.onNodeThree()
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-3"), func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "west" })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		r := w.Runs[1]
		if r.Pod.Spec.NodeName != "node-3" || r.Request.SelectedNode != "node-3" || r.Request.SelectedZone != "west" {
			w.T.Errorf("the delete ran on %s; the image saw the node %q in the zone %q", r.Pod.Spec.NodeName, r.Request.SelectedNode, r.Request.SelectedZone)
		}
		if record := recordOf(w.CreatedJobs(contract.Delete)[0]); record.Node != "node-3" {
			w.T.Errorf("the Job is for the node %q", record.Node)
		}
	})
}

// A kubelet may label its own node as another node, and would have the deletes of that node's
// volumes: each would report success, and the data would stay. As long as two nodes have the
// hostname nothing runs. A run that waits for its node already goes to no other.
func TestADeleteRunsOnNoNodeThatTakesTheHostnameOfAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, _ := w.onNodeThree()
		pv := "PersistentVolume/" + w.PVOf(claim).Name
		thief := w.CreateNode("a-thief", "three")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		if len(w.CreatedJobs(contract.Delete)) != 0 || w.PVOf(claim) == nil {
			w.T.Error("a delete runs although two nodes have the hostname")
		}
		w.MustEmitSome(pv, "VolumeInDoubt", "kubernetes.io/hostname=three", "a-thief and node-3", "kubectl label --overwrite node")
		fakecluster.Update(w, fakecluster.Admin, thief, func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "a-thief" })
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if job := w.CreatedJobs(contract.Delete)[0]; required(job).NodeSelectorTerms[0].MatchFields[0].Values[0] != "node-3" || w.Runs[1].Pod.Spec.NodeName != "node-3" {
			w.T.Errorf("the delete demands %v", required(job))
		}
	})
}

func TestADeleteWaitsForANodeThatNoLongerExists(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree()
		pv := "PersistentVolume/" + w.PVOf(claim).Name
		fakecluster.Delete(w, fakecluster.Admin, node)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		if len(w.CreatedJobs(contract.Delete)) != 0 || w.PVOf(claim) == nil {
			w.T.Error("it was not waited for")
		}
		w.MustEmitSome(pv, "NodeGone", "the volume's node three", "node-gone: wait", "any-node", "forget")
		before := len(w.Dispatcher().Requests())
		w.Advance(24 * time.Hour)
		if n := len(w.Dispatcher().Requests()) - before; n > 0 {
			w.T.Errorf("%d requests in a day of waiting", n)
		}
		w.CreateNode("node-3", "three")
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

func TestADeleteRunsOnAnyNodeWhenItsOwnNoLongerExists(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree("node-gone", "any-node")
		pv := "PersistentVolume/" + w.PVOf(claim).Name
		fakecluster.Delete(w, fakecluster.Admin, node)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if job := w.CreatedJobs(contract.Delete)[0]; required(job) != nil || !recordOf(job).AnyNode {
			w.T.Errorf("the delete demands %v", required(job))
		}
		first := w.Events.About(pv, "Deleting")[0].Note
		if !strings.Contains(first, "on any node: the volume's node three no longer exists, and the config has node-gone: any-node") {
			w.T.Errorf("the event says %q", first)
		}
	})
}

func TestAVolumeIsForgottenWithItsNode(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		t.Run(fmt.Sprintf("PV deleted by hand %v", leaving), func(t *testing.T) {
			inWorld(t, func(w *world) {
				claim, node := w.onNodeThree("node-gone", "forget")
				pv := w.PVOf(claim)
				fakecluster.Delete(w, fakecluster.Admin, node)
				if leaving {
					fakecluster.Delete(w, fakecluster.Admin, pv)
				}
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("the PV has gone", time.Minute, func() bool { return w.PVOf(claim) == nil })
				w.MustRun("provision")
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume has gone, too")
				}
				w.MustEmit("PersistentVolume/"+pv.Name, "LeftBehind", 1, "three", "remains in the storage", "node-gone: forget")
			})
		})
	}
}

// The node is there, so the policy is of no interest; and a volume that was really deleted is not
// called left behind.
func TestAVolumeIsNotForgottenWhileItsNodeIsThere(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, _ := w.onNodeThree("node-gone", "forget")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if len(w.Events.About("", "LeftBehind")) > 0 {
			w.T.Error("it is said to be left behind")
		}
	})
}

// What is to become of a node's volumes is not known before it is lost: the config counts as it is
// now, although the volume was made under an earlier one.
func TestThePolicyForARemovedNodeCanBeChangedAfterwards(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree()
		fakecluster.Delete(w, fakecluster.Admin, node)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		w.UpdateConfig("node-gone", "forget")
		w.Until("the PV has gone", time.Minute, func() bool { return w.PVOf(claim) == nil })
		w.MustRun("provision")
	})
}

// A delete that was launched in time, and whose pod was never placed, is not waited for until its
// timeout.
func TestADeleteThatWaitsForANodeThatIsRemovedIsCancelled(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree("node-gone", "any-node")
		w.Cordoned = "node-3"
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its pod waits", time.Minute, func() bool { return len(w.Events.About("", "Unschedulable")) > 0 })
		fakecluster.Delete(w, fakecluster.Admin, node)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if n := len(w.CreatedJobs(contract.Delete)); n != 2 {
			w.T.Errorf("%d Jobs", n)
		}
	})
}

// halfwayOnThree has a claim whose run on node-3 made something and failed; then the node and the
// claim go.
func (w *world) halfwayOnThree(keys ...string) {
	w.chosenClass(fakecluster.Always(fakecluster.Halfway(75)), []string{"node-3"}, append([]string{"run-on", "selected-node", "max-attempts", "1"}, keys...)...)
	node := w.CreateNode("node-3")
	w.Start()
	claim := w.CreateClaim("data")
	w.Until("it is stalled", time.Minute, func() bool { return len(w.Events.About(onData, "Stalled")) > 0 })
	w.Choices = nil
	fakecluster.Delete(w, fakecluster.Admin, node)
	fakecluster.Delete(w, fakecluster.User, claim)
}

func TestAnUndoKeepsToThePolicyOfItsNode(t *testing.T) {
	t.Run("wait", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.halfwayOnThree()
			w.Advance(time.Hour)
			if len(w.CreatedJobs(contract.Delete)) != 0 || len(w.HeldRecords()) != 1 {
				w.T.Errorf("it was not waited for: records %v", w.HeldRecords())
			}
			w.MustEmitSome(w.jobName(0), "NodeGone", "the node node-3", "node-gone: wait")
			w.CreateNode("node-3")
			w.Until("nothing is left", time.Minute, w.Empty)
			w.MustRun("provision", "delete")
		})
	})
	t.Run("any-node", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.halfwayOnThree("node-gone", "any-node")
			w.Until("nothing is left", time.Minute, w.Empty)
			w.MustRun("provision", "delete")
			w.MustEmitSome("", "Undoing", "on any node", "node-3", "node-gone: any-node")
		})
	})
	t.Run("forget", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.halfwayOnThree("node-gone", "forget")
			w.Until("no record is left", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
			w.MustRun("provision")
			w.MustEmit(w.jobName(0), "LeftBehind", 1, "node-3", "node-gone: forget", "app/data")
		})
	})
}

// The claim lives, and its node goes after a run that made something: what is there is given up,
// said, and the claim is served elsewhere.
func TestAForgottenVolumeIsReportedWhenTheClaimIsRescheduled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(75)), []string{"node-3"}, "run-on", "selected-node", "node-gone", "forget")
		node := w.CreateNode("node-3")
		w.Start()
		w.CreateClaim("data")
		w.Until("two runs failed", time.Minute, func() bool { return len(w.Runs) == 2 })
		w.Choices = []string{"node-1"}
		fakecluster.Delete(w, fakecluster.Admin, node)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustRun("provision", "provision", "provision")
		w.MustEmit(w.jobName(1), "LeftBehind", 1, "node-3", "node-gone: forget")
	})
}

func TestAnExpandKeepsToThePolicyOfItsNode(t *testing.T) {
	for policy, runs := range map[string][]string{"wait": {"provision"}, "forget": {"provision"}, "any-node": {"provision", "expand"}} {
		t.Run(policy, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: local("three")}
				w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.Expandable, fakecluster.WaitForFirstConsumer)
				w.CreateServiceAccount("true")
				w.CreateConfig("gold", "gold", "verbs", "provision,delete,expand", "run-on", "selected-node", "node-gone", policy)
				node := w.CreateNode("node-3", "three")
				w.Choices = []string{"node-3"}
				w.Start()
				w.provisioned("data")
				fakecluster.Delete(w, fakecluster.Admin, node)
				w.requestSize("2Gi")
				w.Advance(time.Hour)
				w.MustRun(runs...)
				if policy != "any-node" {
					w.MustEmitSome(onData, "NodeGone", "the volume's node three", "node-gone: "+policy)
					w.CreateNode("node-3", "three")
				}
				w.Until("it grew", time.Minute, w.hasSize("2Gi"))
			})
		})
	}
}

// A batch's Job bears the name of one claim, and is given up for each that it served.
func TestWhatABatchLeavesOnARemovedNodeIsReportedForEachClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		onThree := func(r *fakecluster.Run) fakecluster.Exit {
			if r.Request.SelectedNode == "node-3" {
				return fakecluster.Halfway(75)(r)
			}
			return fakecluster.Works(r)
		}
		w.chosenClass(onThree, []string{"node-3"}, "run-on", "selected-node", "node-gone", "forget", "max-parallel", "1", "batch-size", "8")
		node := w.CreateNode("node-3")
		w.Start()
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			w.CreateClaim(name)
		}
		w.Until("a batch failed", time.Minute, func() bool { return len(w.CreatedJobs("")) > 2 })
		w.Choices = []string{"node-1"}
		fakecluster.Delete(w, fakecluster.Admin, node)
		for _, name := range names {
			w.Until(name+" is bound", time.Minute, w.IsBound(name))
		}
		for _, name := range names {
			if !slices.ContainsFunc(w.Events.About("", "LeftBehind"), func(e fakecluster.Event) bool { return strings.Contains(e.Note, "app/"+name) }) {
				w.T.Errorf("nothing says what is left of the claim %s", name)
			}
		}
	})
}
