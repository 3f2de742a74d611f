package controller_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestOursOnlyOnceTheSchedulerHasSelectedANode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold", "run-on", "selected-node")
		fakecluster.Create(w, fakecluster.Admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{corev1.LabelHostname: "node-1", corev1.LabelTopologyZone: "west"}}})
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		fakecluster.Update(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, fakecluster.AnnSelectedNode, "node-1") })
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
		if record := recordOf(w.CreatedJobs("")[0]); record.Node != "node-1" {
			w.T.Errorf("the Job is for the node %q", record.Node)
		}
		if r := w.Runs[0].Request; r.SelectedNode != "node-1" || r.SelectedZone != "west" {
			w.T.Errorf("the image sees the node %q in the zone %q", r.SelectedNode, r.SelectedZone)
		}
		fields := w.CreatedJobs("")[0].Now.(*batchv1.Job).Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields
		if len(fields) != 1 || fields[0].Values[0] != "node-1" {
			w.T.Errorf("its pod goes to %v", fields)
		}
	})
}

// Where the scheduler selects no node, the claim's user may write any text into the annotation, and
// a script may paste what it is given.
func TestTextOfAUserIsNoSelectedNode(t *testing.T) {
	for name, text := range map[string]string{"a node": "node-1", "no node": "node-9", "a slash": "a/b", "quotes": `x"}]}]}},"hostPath":{"path":"/`} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75)))
				w.CreateNode("node-1")
				w.Start()
				claim := w.CreateClaim("data", fakecluster.SelectNode(text))
				w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
				fakecluster.Update(w, fakecluster.User, claim, fakecluster.SelectNode(text+"2"))
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.MustRun("provision", "provision")
				for _, r := range w.Runs {
					if r.Request.SelectedNode != "" || r.Request.SelectedZone != "" || len(r.Request.SelectedTopology) > 0 {
						w.T.Errorf("the image is given the node %q, %v", r.Request.SelectedNode, r.Request.SelectedTopology)
					}
				}
				for _, c := range w.CreatedJobs("") {
					job := c.Now.(*batchv1.Job)
					if b, err := json.Marshal(job.Spec.Template.Spec); err != nil || bytes.Contains(b, []byte("hostPath")) || recordOf(c).Node != "" {
						w.T.Errorf("%v: the Job is for the node %q, its pod %s", err, recordOf(c).Node, b)
					}
				}
			})
		})
	}
}

func TestASelectedNodeThatIsNoNameGoesBackToTheScheduler(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.CreateNode("node-1")
		w.Choices = []string{"node-1"}
		w.Start()
		w.CreateClaim("data", fakecluster.SelectNode("a/b"))
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustEmitSome(onData, "Rescheduling", "a/b no longer exists")
		if r := w.Runs[0].Request; r.SelectedNode != "node-1" {
			w.T.Errorf("the image is given the node %q", r.SelectedNode)
		}
	})
}

func TestTheRequestNamesTheNodesZoneAndTheAllowedTopologies(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer, func(class *storagev1.StorageClass) {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{
				{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"west", "east"}}}},
				{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "example.com/rack", Values: []string{"7"}}}},
			}
		})
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		where := map[string]string{corev1.LabelTopologyZone: "west", corev1.LabelTopologyRegion: "alps", corev1.LabelHostname: "one"}
		labels := maps.Clone(where)
		labels["team"] = "is nobody's business"
		fakecluster.Create(w, fakecluster.Admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: labels}})
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, fakecluster.AnnSelectedNode, "node-1") })
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
		r := w.Runs[0].Request
		if !reflect.DeepEqual(r.SelectedTopology, where) {
			w.T.Errorf("the node is at %v, want %v", r.SelectedTopology, where)
		}
		allowed := []map[string][]string{{corev1.LabelTopologyZone: {"west", "east"}}, {"example.com/rack": {"7"}}}
		if !reflect.DeepEqual(r.AllowedTopologies, allowed) {
			w.T.Errorf("the class allows %v, want %v", r.AllowedTopologies, allowed)
		}
	})
}

// The PV controller's annotation stays when the scheduler takes its node back.
func TestOursOnlyUntilTheSelectedNodeIsTakenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{fakecluster.AnnStorageProvisioner: contract.ProvisionerName}
		})
		w.Advance(time.Hour)
		w.MustCreateNoJob()
	})
}

func TestUndoBeforeAnotherAttemptOnAnotherNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Script(fakecluster.Halfway(75))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.CreateNode("node-1")
		w.CreateNode("node-2")
		w.Start()
		claim := w.CreateClaim("data", fakecluster.SelectNode("node-1"))
		w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Advance(time.Second)
		fakecluster.Update(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, fakecluster.AnnSelectedNode, "node-2") })
		w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
		if len(w.Runs) != 3 || w.Runs[1].Verb != contract.Delete || w.Runs[1].Request.SelectedNode != "node-1" || w.Runs[2].Request.SelectedNode != "node-2" {
			w.T.Errorf("ran %v", w.Verbs())
		}
	})
}

func TestAJobThatGetsNoPodEndsAtItsTimeoutAndIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "2m")
		w.NoPodFor["data"] = true
		w.Start()
		w.CreateClaim("data")
		w.Until("the second Job", 5*time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		w.MustEmit(onData, "ProvisioningFailed", 1, "never started")
		w.NoPodFor["data"] = false
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}

// Admission refuses the pods of a config. Once that is fixed nothing has to be undone first: an
// undo under the old config would be refused as well, and the claim wait for ever.
func TestAConfigWhosePodsWereRefusedIsReplacedByItsFixedOneAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.NoPodFor["data"] = true
		w.Start()
		w.CreateClaim("data")
		w.Until("its Job is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		fakecluster.Create(w, fakecluster.KubeControllerManager, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "no-pod", Namespace: fakecluster.ConfigNamespace}, Type: corev1.EventTypeWarning,
			Reason: "FailedCreate", Message: "violates PodSecurity",
		})
		w.Advance(30 * time.Second)
		w.MustEmitSome(onData, "FailedCreate", "violates PodSecurity")
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"), func(cm *corev1.ConfigMap) { cm.Data["zone"] = "west" })
		w.Until("the old Job is cancelled", time.Minute, func() bool { return len(w.deletesOf("jobs")) == 1 })
		w.NoPodFor["data"] = false
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustRun("provision")
	})
}

// A PV that is taken back lies on a node that goes before its volume is deleted.
func TestAnUnboundPVKeepsToThePolicyOfItsNode(t *testing.T) {
	inWorld(t, func(w *world) {
		small := func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) {
				tooSmall(pv)
				pv.Spec.NodeAffinity = onHost("three")
			})
			return fakecluster.Exit{}
		}
		w.chosenClass(fakecluster.Script(small), []string{"node-3"}, "run-on", "selected-node", "node-gone", "any-node")
		node := w.CreateNode("node-3", "three")
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the PV is replaced", time.Minute, func() bool {
			pv := w.PVOf(claim)
			return pv != nil && pv.DeletionTimestamp != nil
		})
		w.Choices = []string{"node-1"}
		fakecluster.Delete(w, fakecluster.Admin, node)
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
	})
}
