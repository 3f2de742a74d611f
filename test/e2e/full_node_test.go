//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// within makes a pod that goes only to nodes with the test's label, and of these to node1, if it
// can.
func (w *world) within(claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	pod := shell("consumer", "", "echo it is here", claim)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: w.nodeLabel(), Operator: corev1.NodeSelectorOpExists}},
		}}},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node1"}}},
		}}},
	}}
	return pod
}

func (w *world) nodeLabel() string { return "flex-provisioner.io/" + w.ns }

// open gives a node the test's label.
func (w *world) open(node string) {
	w.t.Helper()
	w.remove(func() { w.label(node, w.nodeLabel(), "null") })
	w.label(node, w.nodeLabel(), `"yes"`)
}

// returns are the notes about returns of a claim to the scheduler: after a run, and without one.
func returns(ctx context.Context, claim *corev1.PersistentVolumeClaim) (after, without []string, err error) {
	notes, err := notesOf(ctx, claim, "Rescheduling")
	for _, note := range notes {
		if strings.Contains(note, "no Job is created") {
			without = append(without, note)
		} else {
			after = append(after, note)
		}
	}
	return after, without, err
}

// provisionedOn are the nodes of a claim's provision runs, in their order.
func (w *world) provisionedOn(claim *corev1.PersistentVolumeClaim) string {
	w.t.Helper()
	var out []string
	for _, job := range w.jobs(claim, "provision") {
		out = append(out, variable(job, "FLEX_SELECTED_NODE"))
	}
	return strings.Join(out, " ")
}

// The scheduler can select only the full node, again and again, which the dispatcher does not know.
// No run is started there, and as soon as the scheduler selects the other node, the claim is
// provisioned.
func TestClaimThatComesBackToAFullNodeReturnsWithoutARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "comes-back")
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.config(nodeNamespace, w.ns, crowded())
	claim := w.claim(w.ns, "data")
	w.open("node1")
	w.pod(w.within(claim))
	w.eventually(2*time.Minute, "the second return without a run", func(ctx context.Context) error {
		after, without, err := returns(ctx, claim)
		if err == nil && (len(after) != 1 || len(without) < 2) {
			return fmt.Errorf("returned after a run: %q; without one: %q", after, without)
		}
		return err
	})
	equal(t, "nodes of the runs while the scheduler selects the full one", w.provisionedOn(claim), "node1")
	w.open("node2")
	w.label("node1", w.nodeLabel(), "null")
	w.bound(claim)
	equal(t, "what the consumer read", w.output("consumer"), "it is here\n")
	equal(t, "nodes of the runs", w.provisionedOn(claim), "node1 node2")
	w.event(claim, "Rescheduling", "selected the node node1 again", "exit code 73", "node2 may have room", "(return 2 since the last run)")
	w.deletePods("consumer")
	w.deleteClaim(claim)
	w.vanished(claim)
}

// The provision tolerates the taint of the cordoned node, and must not be made again there. The test
// is not parallel: no other test finds the node so.
func TestClaimLeavesANodeThatIsDrained(t *testing.T) { //nolint:paralleltest // it cordons a node
	w := newWorld(t, "leaves")
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	slow := crowded()
	slow["script"] = strings.Replace(slow["script"], "sleep 5", "sleep 300", 1)
	w.config(nodeNamespace, w.ns, slow)
	claim := w.claim(w.ns, "data")
	w.open("node1")
	w.open("node2")
	w.pod(w.within(claim))
	w.drain("node1", w.runningPod(claim))
	w.bound(claim)
	equal(t, "what the consumer read", w.output("consumer"), "it is here\n")
	equal(t, "nodes of the runs", w.provisionedOn(claim), "node1 node2")
	w.event(claim, "Rescheduling", "node1", "Disrupted")
	w.deletePods("consumer")
	w.deleteClaim(claim)
	w.vanished(claim)
}

// runningPod waits until the first provision of a claim has a pod that runs.
func (w *world) runningPod(claim *corev1.PersistentVolumeClaim) (pod corev1.Pod) {
	w.t.Helper()
	w.eventually(2*time.Minute, "the provision's pod to run", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "provision")
		if err != nil || len(jobs) == 0 {
			return cmp.Or(err, errors.New("there is no Job"))
		}
		pods, err := podsOf(ctx, jobs[0])
		if err != nil || len(pods) == 0 || pods[0].Status.Phase != corev1.PodRunning {
			return cmp.Or(err, fmt.Errorf("%d pods", len(pods)))
		}
		pod = pods[0]
		return nil
	})
	return pod
}

// drain cordons a node until the test ends, and evicts a pod.
func (w *world) drain(node string, pod corev1.Pod) {
	w.t.Helper()
	cordon := func(is string) {
		patch := []byte(`{"spec":{"unschedulable":` + is + `}}`)
		nodes := kube.CoreV1().Nodes()
		_, err := nodes.Patch(w.ctx(), node, types.MergePatchType, patch, metav1.PatchOptions{})
		w.must(err, "change the node "+node)
	}
	w.remove(func() { cordon("null") })
	cordon("true")
	w.must(kube.CoreV1().Pods(pod.Namespace).EvictV1(w.ctx(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
	}), "evict the pod")
}
