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
)

// local writes a PV that says on which node its volume lies, by the node's hostname label.
func local(hostname string) func(*run) ending {
	return func(r *run) ending {
		if r.verb != contract.Provision {
			return works(r)
		}
		r.make()
		r.write(func(pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity = onHost(hostname)
		})
		return ending{}
	}
}

func onHost(hostname string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname}},
		},
	}}}}
}

// onNodeThree has a bound claim of the class gold whose volume lies on node-3, which calls itself three.
func (w *world) onNodeThree(keys ...string) (*corev1.PersistentVolumeClaim, *corev1.Node) {
	w.chosenClass(local("three"), []string{"node-3"}, append([]string{"run-on", "selected-node"}, keys...)...)
	node := w.node("node-3", "three")
	w.start()
	return w.settled("data"), node
}

// required is what a Job demands of its node.
func required(c change) *corev1.NodeSelector {
	affinity := c.now.(*batchv1.Job).Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func TestItem07ADeleteGoesToTheVolumesNodeAndKnowsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, _ := w.onNodeThree()
		edit(w, admin, get[*corev1.Node](w, "", "node-3"), func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "west" })
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		r := w.runs[1]
		if r.pod.Spec.NodeName != "node-3" || r.request.SelectedNode != "node-3" || r.request.SelectedZone != "west" {
			w.t.Errorf("the delete ran on %s; the image saw the node %q in the zone %q", r.pod.Spec.NodeName, r.request.SelectedNode, r.request.SelectedZone)
		}
		if job := w.made(contract.Delete)[0].now; job.GetAnnotations()[jobs.AnnNode] != "node-3" {
			w.t.Errorf("the Job is for the node %q", job.GetAnnotations()[jobs.AnnNode])
		}
	})
}

func TestItem07ADeleteWaitsForANodeThatHasGone(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree()
		pv := "PersistentVolume/" + w.pvOf(claim).Name
		drop(w, admin, node)
		drop(w, user, claim)
		w.run(time.Hour)
		if len(w.made(contract.Delete)) != 0 || w.pvOf(claim) == nil {
			w.t.Error("it was not waited for")
		}
		w.mustSay(pv, "NodeGone", "the volume's node three", "node-gone: wait", "any-node", "forget")
		before := len(w.dispatcher.client.Actions())
		w.run(24 * time.Hour)
		if n := len(w.dispatcher.client.Actions()) - before; n > 0 {
			w.t.Errorf("%d requests in a day of waiting", n)
		}
		w.node("node-3", "three")
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}

func TestItem07ADeleteRunsOnAnyNodeWhenItsOwnHasGone(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree("node-gone", "any-node")
		pv := "PersistentVolume/" + w.pvOf(claim).Name
		drop(w, admin, node)
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		if job := w.made(contract.Delete)[0]; required(job) != nil || job.now.GetAnnotations()[jobs.AnnAnywhere] != "true" {
			w.t.Errorf("the delete demands %v", required(job))
		}
		first := w.events.said(pv, "Deleting")[0].note
		if !strings.Contains(first, "on any node: the volume's node three does not exist any more, and its config says node-gone: any-node") {
			w.t.Errorf("the event says %q", first)
		}
	})
}

func TestItem07AVolumeIsForgottenWithItsNode(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		t.Run(fmt.Sprintf("PV deleted by hand %v", leaving), func(t *testing.T) {
			inWorld(t, func(w *world) {
				claim, node := w.onNodeThree("node-gone", "forget")
				pv := w.pvOf(claim)
				drop(w, admin, node)
				if leaving {
					drop(w, admin, pv)
				}
				drop(w, user, claim)
				w.until("the PV has gone", time.Minute, func() bool { return w.pvOf(claim) == nil })
				w.mustRun("provision")
				if !w.storage[string(claim.UID)] {
					w.t.Error("the volume has gone, too")
				}
				w.mustTell("PersistentVolume/"+pv.Name, "LeftBehind", 1, "three", "stays in the storage", "node-gone: forget")
			})
		})
	}
}

// The node is there, so the policy is of no interest; and a volume that was really deleted is not called left behind.
func TestItem07AVolumeIsNotForgottenWhileItsNodeIsThere(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, _ := w.onNodeThree("node-gone", "forget")
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		if len(w.events.said("", "LeftBehind")) > 0 {
			w.t.Error("it is said to be left behind")
		}
	})
}

// Nobody knows before a node is lost what is to become of its volumes: the config's present word counts, although
// the volume was made under an earlier one.
func TestItem07ThePolicyForALostNodeCanBeChangedWhenItIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree()
		drop(w, admin, node)
		drop(w, user, claim)
		w.run(time.Hour)
		w.reconfigure("node-gone", "forget")
		w.until("the PV has gone", time.Minute, func() bool { return w.pvOf(claim) == nil })
		w.mustRun("provision")
	})
}

// A delete that was launched in time, and whose pod was never placed, is not waited for until its timeout.
func TestItem07ADeleteThatWaitsForANodeThatGoesIsCancelled(t *testing.T) {
	inWorld(t, func(w *world) {
		claim, node := w.onNodeThree("node-gone", "any-node")
		w.cordoned = "node-3"
		drop(w, user, claim)
		w.until("its pod waits", time.Minute, func() bool { return len(w.events.said("", "Unschedulable")) > 0 })
		drop(w, admin, node)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		if n := len(w.made(contract.Delete)); n != 2 {
			w.t.Errorf("%d Jobs", n)
		}
	})
}

// halfwayOnThree has a claim whose run on node-3 made something and failed; then the node and the claim go.
func (w *world) halfwayOnThree(keys ...string) {
	w.chosenClass(always(halfway(75)), []string{"node-3"}, append([]string{"run-on", "selected-node", "max-attempts", "1"}, keys...)...)
	node := w.node("node-3")
	w.start()
	claim := w.claim("data")
	w.until("it is stalled", time.Minute, func() bool { return len(w.events.said(onData, "Stalled")) > 0 })
	w.choices = nil
	drop(w, admin, node)
	drop(w, user, claim)
}

func TestItem07AnUndoKeepsToThePolicyOfItsNode(t *testing.T) {
	t.Run("wait", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.halfwayOnThree()
			w.run(time.Hour)
			if len(w.made(contract.Delete)) != 0 || len(w.records()) != 1 {
				w.t.Errorf("it was not waited for: records %v", w.records())
			}
			w.mustSay(w.jobName(0), "NodeGone", "the node node-3", "node-gone: wait")
			w.node("node-3")
			w.until("nothing is left", time.Minute, w.empty)
			w.mustRun("provision", "delete")
		})
	})
	t.Run("any-node", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.halfwayOnThree("node-gone", "any-node")
			w.until("nothing is left", time.Minute, w.empty)
			w.mustRun("provision", "delete")
			w.mustSay("", "Undoing", "on any node", "node-3", "node-gone: any-node")
		})
	})
	t.Run("forget", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.halfwayOnThree("node-gone", "forget")
			w.until("no record is left", time.Minute, func() bool { return len(w.records()) == 0 })
			w.mustRun("provision")
			w.mustTell(w.jobName(0), "LeftBehind", 1, "node-3", "node-gone: forget", "app/data")
		})
	})
}

// The claim lives, and its node goes after a run that made something: what is there is given up, said, and the claim
// is served elsewhere.
func TestItem07WhatIsForgottenIsSaidWhenTheClaimMovesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(script(halfway(75), halfway(75)), []string{"node-3"}, "run-on", "selected-node", "node-gone", "forget")
		node := w.node("node-3")
		w.start()
		w.claim("data")
		w.until("two runs failed", time.Minute, func() bool { return len(w.runs) == 2 })
		w.choices = []string{"node-1"}
		drop(w, admin, node)
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.mustRun("provision", "provision", "provision")
		w.mustTell(w.jobName(1), "LeftBehind", 1, "node-3", "node-gone: forget")
	})
}

func TestItem07AnExpandKeepsToThePolicyOfItsNode(t *testing.T) {
	for policy, runs := range map[string][]string{"wait": {"provision"}, "forget": {"provision"}, "any-node": {"provision", "expand"}} {
		t.Run(policy, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.images[gold] = image{does: local("three")}
				w.class("gold", corev1.PersistentVolumeReclaimDelete, expandable, firstConsumer)
				w.account("true")
				w.config("gold", "gold", "verbs", "provision,delete,expand", "run-on", "selected-node", "node-gone", policy)
				node := w.node("node-3", "three")
				w.choices = []string{"node-3"}
				w.start()
				w.settled("data")
				drop(w, admin, node)
				w.ask("2Gi")
				w.run(time.Hour)
				w.mustRun(runs...)
				if policy != "any-node" {
					w.mustSay(onData, "NodeGone", "the volume's node three", "node-gone: "+policy)
					w.node("node-3", "three")
				}
				w.until("it grew", time.Minute, w.has("2Gi"))
			})
		})
	}
}

// A batch's Job bears the name of one claim, and is given up for each that it served.
func TestItem07WhatABatchLeavesOnALostNodeIsSaidForEachClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		onThree := func(r *run) ending {
			if r.request.SelectedNode == "node-3" {
				return halfway(75)(r)
			}
			return works(r)
		}
		w.chosenClass(onThree, []string{"node-3"}, "run-on", "selected-node", "node-gone", "forget", "max-parallel", "1", "batch-size", "8")
		node := w.node("node-3")
		w.start()
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			w.claim(name)
		}
		w.until("a batch failed", time.Minute, func() bool { return len(w.made("")) > 2 })
		w.choices = []string{"node-1"}
		drop(w, admin, node)
		for _, name := range names {
			w.until(name+" is bound", time.Minute, w.bound(name))
		}
		for _, name := range names {
			if !slices.ContainsFunc(w.events.all("LeftBehind"), func(e told) bool { return strings.Contains(e.note, "app/"+name) }) {
				w.t.Errorf("nothing says what is left of the claim %s", name)
			}
		}
	})
}

// A PV that is taken back lies on a node that goes before its volume is deleted.
func TestItem07AWithdrawnPVKeepsToThePolicyOfItsNode(t *testing.T) {
	inWorld(t, func(w *world) {
		small := func(r *run) ending {
			r.make()
			r.write(func(pv *corev1.PersistentVolume) {
				tooSmall(pv)
				pv.Spec.NodeAffinity = onHost("three")
			})
			return ending{}
		}
		w.chosenClass(script(small), []string{"node-3"}, "run-on", "selected-node", "node-gone", "any-node")
		node := w.node("node-3", "three")
		w.start()
		claim := w.claim("data")
		w.until("the PV is withdrawn", time.Minute, func() bool {
			pv := w.pvOf(claim)
			return pv != nil && pv.DeletionTimestamp != nil
		})
		w.choices = []string{"node-1"}
		drop(w, admin, node)
		w.until("the claim is bound", 10*time.Minute, w.bound("data"))
	})
}
