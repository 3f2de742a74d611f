package sim_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// nodes are those of the world.
var nodes = []string{"node-1", "node-2"}

// createMissingNodes creates the nodes that are missing.
func (w *world) createMissingNodes() string {
	created := ""
	for _, name := range nodes {
		if fakecluster.Get[*corev1.Node](w, "", name) == nil {
			w.CreateNode(name)
			created += " " + name
		}
	}
	return created
}

// removeNode deletes a node with its machine. The garbage collector of pods ends its pods, and knows nothing of their containers.
func (w *world) removeNode() string {
	return one(w, func(node *corev1.Node) {
		fakecluster.Delete(w, fakecluster.Admin, node)
		for _, pod := range fakecluster.List[*corev1.Pod](w) {
			if pod.Spec.NodeName == node.Name {
				w.collect(pod)
			}
		}
	})
}

// collect is what the garbage collector of pods does with one whose node does not exist.
func (w *world) collect(pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		fakecluster.Update(w, fakecluster.KubeControllerManager, pod, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"})
		})
	}
	if pod.DeletionTimestamp == nil {
		fakecluster.Delete(w, fakecluster.KubeControllerManager, pod)
	}
}

// onItsNode writes a PV that is reachable from its node only.
func onItsNode(r *fakecluster.Run) fakecluster.Exit {
	if r.Verb != contract.Provision || r.Request.SelectedNode == "" {
		return fakecluster.Works(r)
	}
	r.CreateVolume()
	r.WritePV(func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{r.Request.SelectedNode}}},
		}}}}
	})
	return fakecluster.Exit{}
}

// setWaits says why no container starts, or nothing if they do.
func (w *world) setWaits(why string) string {
	for name, image := range w.Images {
		image.Waits = why
		w.Images[name] = image
	}
	return "all"
}
