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

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
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
		if job.Annotations[jobs.AnnNode] != "node-1" {
			w.t.Errorf("the Job is for the node %q", job.Annotations[jobs.AnnNode])
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
		w.images[gold] = image{does: script(halfway(75))}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("true")
		w.config("gold", "gold")
		w.node("node-1")
		w.node("node-2")
		w.start()
		claim := w.claim("data", on("node-1"))
		w.until("the first run failed", time.Minute, func() bool { return len(w.runs) == 1 })
		w.run(time.Second)
		edit(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "node-2") })
		w.until("the claim is bound", 10*time.Second, w.bound("data"))
		if len(w.runs) != 3 || w.runs[1].verb != contract.Delete || w.runs[1].request.SelectedNode != "node-1" || w.runs[2].request.SelectedNode != "node-2" {
			w.t.Errorf("ran %v", w.verbs())
		}
	})
}

func TestItem01AJobThatGetsNoPodEndsAtItsTimeoutAndIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "timeout", "2m")
		w.stuck["data"] = true
		w.start()
		w.claim("data")
		w.until("the second Job", 5*time.Minute, func() bool { return len(w.made("")) == 2 })
		w.mustTell(onData, "ProvisioningFailed", 1, "never started")
		w.stuck["data"] = false
		w.until("the claim is bound", time.Minute, w.bound("data"))
	})
}

// Admission refuses the pods of a config. Once that is mended nothing has to be undone first: an undo under the
// old config would be refused as well, and the claim wait for ever.
func TestItem01AConfigWhosePodsWereRefusedIsFollowedByItsMendedOneAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.stuck["data"] = true
		w.start()
		w.claim("data")
		w.until("its Job is there", time.Minute, func() bool { return len(w.made("")) == 1 })
		add(w, kcm, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "no-pod", Namespace: home}, Type: corev1.EventTypeWarning,
			Reason: "FailedCreate", Message: "violates PodSecurity",
		})
		w.run(30 * time.Second)
		w.mustSay(onData, "FailedCreate", "violates PodSecurity")
		edit(w, admin, get[*corev1.ConfigMap](w, home, "gold"), func(cm *corev1.ConfigMap) { cm.Data["zone"] = "west" })
		w.until("the old Job is cancelled", time.Minute, func() bool { return len(w.deletesOf("jobs")) == 1 })
		w.stuck["data"] = false
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.mustRun("provision")
	})
}
