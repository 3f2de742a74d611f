package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// Whoever writes the claim may select any node for it. A Job there would wait for a node that never
// takes it, and hold a slot.
func TestAClaimWhoseSelectedNodeIsExcludedIsRescheduled(t *testing.T) {
	const spread, affinity = "kubernetes.io/hostname=node-2", "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [node-1]}]}]}}}}"
	taint := func(w *world) {
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
		})
	}
	unnamed := func(w *world) {
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"), func(n *corev1.Node) { n.Labels = map[string]string{"disk": "ssd"} })
	}
	windows := func(w *world) {
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"), func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" })
	}
	onNode2 := func(w *world) {
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"), func(c *storagev1.StorageClass) {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelHostname, Values: []string{"node-2"}}},
			}}
		})
	}
	nothing := func(*world) {}
	for name, tt := range map[string]struct {
		change func(*world)
		keys   []string
		says   string
	}{
		"by the class":              {onNode2, nil, "is not in the allowedTopologies of the class gold"},
		"by the config":             {nothing, []string{"run-on", "selected-node", "node-selector", spread}, "list the nodes that can run the Jobs in the class's allowedTopologies"},
		"by the template":           {nothing, []string{"run-on", "selected-node", "pod-template", "spec: {nodeSelector: {kubernetes.io/hostname: node-2}}"}, "exclude the node"},
		"by the template, affinity": {nothing, []string{"run-on", "selected-node", "pod-template", affinity}, "exclude the node"},
		"by a taint":                {taint, []string{"run-on", "selected-node"}, "does not tolerate the taint maintenance:NoExecute"},
		"by its operating system":   {windows, []string{"run-on", "selected-node"}, "list the nodes that can run the Jobs in the class's allowedTopologies"},
		"by its missing hostname":   {unnamed, []string{"run-on", "selected-node"}, "kubectl label node node-1 kubernetes.io/hostname=node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.chosenClass(fakecluster.Works, []string{"node-1", "node-2"}, tt.keys...)
				tt.change(w)
				w.Start()
				w.CreateClaim("data")
				w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
				if got := w.where(); !slices.Equal(got, []string{"provision on node-2"}) || len(w.CreatedJobs("")) != 1 {
					w.T.Errorf("ran %v by %d Jobs", got, len(w.CreatedJobs("")))
				}
				w.MustEmit(onData, "Rescheduling", 1, "the selected node node-1", tt.says)
			})
		})
	}
}

// localWorks is an image whose volumes are reachable from the selected node only.
func localWorks(r *fakecluster.Run) fakecluster.Exit {
	if r.Verb != contract.Provision {
		return fakecluster.Works(r)
	}
	r.CreateVolume()
	r.WritePV(func(pv *corev1.PersistentVolume) {
		asLocal(pv)
		pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{r.Request.SelectedNode}
	})
	return fakecluster.Exit{}
}

// A taint that a pod with volumes there must tolerate, too, or that the template tolerates, or that
// only says how the node is at the moment, excludes no node.
func TestATaintThatIsToleratedExcludesNoNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(localWorks, []string{"node-1"}, "run-on", "selected-node", "pod-template", "spec: {tolerations: [{key: maintenance, operator: Exists}]}")
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{
				{Key: "storage", Value: "only", Effect: corev1.TaintEffectNoSchedule},
				{Key: "maintenance", Effect: corev1.TaintEffectNoExecute},
				{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule},
				{Key: "busy", Effect: corev1.TaintEffectPreferNoSchedule},
				{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
			}
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
		if n := len(w.returns()); n != 0 {
			w.T.Errorf("the node was taken off %d times", n)
		}
		w.mustTolerate(contract.Provision, "storage", "node-role.kubernetes.io/control-plane", corev1.TaintNodeUnschedulable)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("nothing is left", time.Minute, w.Empty)
		w.mustTolerate(contract.Delete, "storage", "node-role.kubernetes.io/control-plane", corev1.TaintNodeUnschedulable)
	})
}

// mustTolerate checks that the pod of the first Job of a verb tolerates some taints.
func (w *world) mustTolerate(verb contract.Verb, keys ...string) {
	w.T.Helper()
	for _, key := range keys {
		all := w.CreatedJobs(verb)[0].Now.(*batchv1.Job).Spec.Template.Spec.Tolerations
		if !slices.ContainsFunc(all, func(t corev1.Toleration) bool { return t.Key == key }) {
			w.T.Errorf("the %s does not tolerate %s: %v", verb, key, all)
		}
	}
}

// The scheduler does not know the config. It is asked again and again, at a pace that slows down,
// and no slot is held meanwhile.
func TestAnExcludedNodeThatIsSelectedAgainIsReturnedMoreAndMoreRarely(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-1"}, "run-on", "selected-node", "node-selector", "kubernetes.io/hostname=node-2")
		w.Start()
		w.CreateClaim("data")
		w.Advance(30 * time.Minute)
		if n := len(w.returns()); n < 5 || n > 16 || len(w.CreatedJobs("")) != 0 {
			w.T.Errorf("the node was taken off %d times, and %d Jobs were created", n, len(w.CreatedJobs("")))
		}
		w.Choices = []string{"node-2"}
		before := len(w.returns())
		w.Until("it is returned once more", 10*time.Minute, func() bool { return len(w.returns()) > before })
		w.Until("the claim is bound, without the pause before a further return", 10*time.Second, w.IsBound("data"))
	})
}

// The Job was launched in time, but its pod was not placed: it is of no use when the node is
// removed, or excluded.
func TestAJobThatWaitsForANodeThatIsRemovedIsCancelled(t *testing.T) {
	for name, change := range map[string]func(*world, *corev1.Node){
		"removed": func(w *world, node *corev1.Node) { fakecluster.Delete(w, fakecluster.Admin, node) },
		"excluded": func(w *world, node *corev1.Node) {
			fakecluster.Update(w, fakecluster.Admin, node, func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "db", Effect: corev1.TaintEffectNoExecute}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.chosenClass(fakecluster.Works, []string{"node-3", "node-1"}, "run-on", "selected-node")
				node := w.CreateNode("node-3", "other")
				w.NoPodFor["data"] = true
				w.Start()
				w.CreateClaim("data")
				w.Until("its Job is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
				change(w, node)
				w.NoPodFor["data"] = false
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				if got := w.where(); !slices.Equal(got, []string{"provision on node-1"}) {
					w.T.Errorf("ran %v", got)
				}
			})
		})
	}
}

// A node that is cordoned or full of pods for the whole timeout of a run is as good as gone.
func TestAClaimWhoseNodeNeverTakesTheJobIsRescheduled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-1", "node-2"}, "run-on", "selected-node", "timeout", "2m")
		w.Cordoned = "node-1"
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
		if got := w.where(); !slices.Equal(got, []string{"provision on node-2"}) || len(w.returns()) != 1 {
			w.T.Errorf("ran %v, given back %d times", got, len(w.returns()))
		}
	})
}

// What runs on the node that goes is waited out and undone before the claim moves on.
func TestUndoBeforeAnotherAttemptWhenTheNodeIsRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-1", "node-2"}, "run-on", "selected-node", "node-gone", "any-node")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"))
		w.NodeLost = true
		w.collectOrphan(pod)
		w.Until("the undo", time.Hour, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		w.mustStartAfterDeadline(pod)
		w.NodeLost = false
		w.Until("the claim is bound", time.Hour, w.IsBound("data"))
		if got := w.where(); !slices.Equal(got, []string{"delete on node-1", "provision on node-2"}) {
			w.T.Errorf("ran %v", got)
		}
	})
}
