package controller_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

func TestRule11WaitForFirstConsumerWaitsForTheSchedulersNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("true")
		w.config("gold", "gold", "run-on", "selected-node")
		add(w, admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{corev1.LabelTopologyZone: "west"}}})
		w.start()
		claim := w.claim("data")
		w.run(time.Hour)
		w.mustServeNobody()
		edit(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "node-1") })
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		job := w.made("")[0].now.(*batchv1.Job)
		if job.Annotations[contract.AnnNode] != "node-1" {
			w.t.Errorf("the Job is for the node %q", job.Annotations[contract.AnnNode])
		}
		if r := w.runs[0].request; r.SelectedNode != "node-1" || r.SelectedZone != "west" {
			w.t.Errorf("the image sees the node %q in the zone %q", r.SelectedNode, r.SelectedZone)
		}
		fields := job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields
		if len(fields) != 1 || fields[0].Values[0] != "node-1" {
			w.t.Errorf("its pod goes to %v", fields)
		}
	})
}

func TestItem07TheRequestTellsWhereTheNodeIsAndWhereTheVolumeMayBe(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer, func(class *storagev1.StorageClass) {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{
				{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"west", "east"}}}},
				{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "example.com/rack", Values: []string{"7"}}}},
			}
		})
		w.account("true")
		w.config("gold", "gold")
		where := map[string]string{corev1.LabelTopologyZone: "west", corev1.LabelTopologyRegion: "alps", corev1.LabelHostname: "one"}
		labels := maps.Clone(where)
		labels["team"] = "is nobody's business"
		add(w, admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: labels}})
		w.start()
		w.claim("data", func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "node-1") })
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		r := w.runs[0].request
		if !reflect.DeepEqual(r.SelectedTopology, where) {
			w.t.Errorf("the node is at %v, want %v", r.SelectedTopology, where)
		}
		allowed := []map[string][]string{{corev1.LabelTopologyZone: {"west", "east"}}, {"example.com/rack": {"7"}}}
		if !reflect.DeepEqual(r.AllowedTopologies, allowed) {
			w.t.Errorf("the class allows %v, want %v", r.AllowedTopologies, allowed)
		}
	})
}

// The PV controller's annotation stays when the scheduler takes its node back.
func TestRule11AClaimWhoseNodeWasTakenBackWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("true")
		w.config("gold", "gold")
		w.start()
		w.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{annAsked: contract.ProvisionerName}
		})
		w.run(time.Hour)
		w.mustServeNobody()
	})
}

func TestRule10AnotherNodeIsAnotherRunAfterAnUndo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: script(halfway(73))}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("true")
		w.config("gold", "gold")
		w.start()
		claim := w.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{annNode: "node-1"} })
		w.until("the first run failed", time.Minute, func() bool { return len(w.runs) == 1 })
		w.run(time.Second)
		edit(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "node-2") })
		w.until("the claim is bound", 10*time.Second, w.bound("data"))
		if len(w.runs) != 3 || w.runs[1].verb != contract.Delete || w.runs[1].request.SelectedNode != "node-1" || w.runs[2].request.SelectedNode != "node-2" {
			w.t.Errorf("ran %v", w.verbs())
		}
	})
}

func TestRule05APodOnALostNodeIsWaitedForAndTheClaimSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: works, takes: 5 * time.Minute}
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		pod := w.running()[0]
		w.lostNode = true
		drop(w, "node-lifecycle-controller", pod)
		w.run(time.Hour)
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs while nobody knows whether the pod still runs", n)
		}
		w.mustHave(onData, "WaitingForNode", []string{pod.Name, "--force"})
		if len(w.events.said(onData, "WaitingForNode")) == 0 {
			w.t.Error("the claim does not say what it waits for")
		}
		w.lostNode = false
		w.until("the claim is bound", 10*time.Minute, w.bound("data"))
	})
}

func TestRule05AClaimDeletedWhileItsNodeIsLostIsUndoneOnceItIsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: always(halfway(75)), takes: 5 * time.Minute}
		w.start()
		claim := w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		w.lostNode = true
		drop(w, "node-lifecycle-controller", w.running()[0])
		drop(w, user, claim)
		w.run(time.Hour)
		if n := len(w.made(contract.Delete)); n != 0 {
			w.t.Errorf("%d undos while nobody knows whether the pod still runs", n)
		}
		w.lostNode = false
		w.until("nothing is left", 10*time.Minute, w.empty)
	})
}

func TestItem01AJobThatGetsNoPodEndsAtItsTimeoutAndIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "timeout", "2m")
		w.stuck["data"] = true
		w.start()
		w.claim("data")
		w.until("the second Job", 5*time.Minute, func() bool { return len(w.made("")) == 2 })
		w.mustTell(onData, "ProvisioningFailed", 1, "DeadlineExceeded")
		w.stuck["data"] = false
		w.until("the claim is bound", time.Minute, w.bound("data"))
	})
}
