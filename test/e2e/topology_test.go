//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const annSelectedNode = "volume.kubernetes.io/selected-node"

// firstConsumer lets the scheduler choose the node of a class's volumes.
func firstConsumer(class *storagev1.StorageClass) {
	class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

// label sets a label on a node, or takes it off, if the value is null.
func (w *world) label(node, key, value string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value)
	_, err := kube.CoreV1().Nodes().Patch(w.ctx(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "label the node "+node)
}

// directoryScript returns the script of configmaps/node-directory.yaml, with lines that run before
// it.
func directoryScript(first string) string {
	text, err := os.ReadFile("../../scripts/directory-provisioner.sh")
	if err != nil {
		panic(err) // a file of this repository
	}
	return strings.Replace(string(text), "#!/bin/bash\n", "#!/bin/bash\n"+first, 1)
}

// crowded is the provisioner of directories, except that node1 has no capacity left when half of
// the work is done.
func crowded() map[string]string {
	return map[string]string{
		"verbs": "provision,delete", "service-account-name": "directory-provisioner",
		"run-on": "selected-node", "base-dir": "/var/lib/flex-volumes",
		"script": directoryScript(`if [ "$1 $FLEX_SELECTED_NODE" = "provision node1" ]; then
  mkdir "$FLEX_BASE_DIR/$FLEX_PV_NAME"
  sleep 5
  echo "claim: node1 has no room"
  exit 73
fi
`),
		"pod-template": `
spec:
  securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0}
  containers:
    - name: provisioner
      securityContext:
        capabilities: {drop: [ALL], add: [DAC_OVERRIDE, FOWNER]}
      volumeMounts:
        - {name: volumes, mountPath: /var/lib/flex-volumes}
  volumes:
    - name: volumes
      hostPath: {path: /var/lib/flex-volumes, type: DirectoryOrCreate}
`,
	}
}

// A claim leaves a node without capacity: what was made there is undone, and the scheduler selects
// another node for pod and claim.
func TestClaimMovesToAnotherNodeWhenItsOwnIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "crowded")
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.config(nodeNamespace, w.ns, crowded())
	claim := w.claim(w.ns, "data")
	preferred := "flex-provisioner.io/" + w.ns
	for _, node := range nodes {
		w.remove(func() { w.label("node"+node, preferred, "null") })
	}
	w.label("node1", preferred, `"yes"`)
	pod := shell("consumer", "", "echo it is here >/data/file; cat /data/file", claim)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: preferred, Operator: corev1.NodeSelectorOpExists}},
		}}},
	}}
	w.pod(pod)
	w.eventually(toBind, "a Job", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "provision")
		if err == nil && len(jobs) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	w.label("node2", preferred, `"yes"`) // the scheduler's next choice is another
	w.label("node1", preferred, "null")

	equal(t, "what the consumer read", w.output("consumer"), "it is here\n")
	w.bound(claim)
	equal(t, "nodes with the directory", w.holders(claim), "[node2]")
	var ran []string
	for _, job := range w.jobs(claim, "") {
		ran = append(ran, job.Labels["flex-provisioner.io/verb"]+" on "+w.onlyPod(job).Spec.NodeName)
	}
	equal(t, "what ran", strings.Join(ran, ", "), "provision on node1, delete on node1, provision on node2")
	w.event(claim, "ProvisioningFailed", "node1 has no room", "exit code 73", "or sooner if the scheduler selects another node")
	w.event(claim, "Rescheduling", "node1", "NoCapacity")

	w.deletePods("consumer")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
}

// selected makes a claim whose node is selected by the test, so that no scheduler selects another.
func (w *world) selected(node string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	return w.claim(w.ns, "data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{annSelectedNode: node} })
}

// onMissingNode makes a bound claim whose volume can be reached only from a node that does not
// exist, under a value of node-gone.
func onMissingNode(t *testing.T, policy string) (*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	t.Helper()
	w := newWorld(t, "lost-node")
	w.class(w.ns, firstConsumer)
	data := offers(`{"source": {"nfs": {"server": "10.250.0.9", "path": "/exports/$FLEX_PV_NAME"}}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-that-has-gone"]}]}]}}}`)
	data["run-on"], data["node-gone"] = "selected-node", policy
	w.config(ownNamespace, w.ns, data)
	claim := w.selected("node1")
	pv := w.bound(claim)
	w.deleteClaim(claim)
	return w, claim, pv
}

func TestDeleteRunsOnAnyNodeWhenItsOwnNoLongerExists(t *testing.T) {
	t.Parallel()
	w, claim, pv := onMissingNode(t, "any-node")
	w.vanished(claim)
	w.event(pv, "Deleting", "on any node", "node-that-has-gone", "node-gone: any-node")
	job := w.onlyJob(claim, "delete")
	equal(t, "the delete's Job succeeded", w.jobEnded(claim, "delete").Type, "Complete")
	equal(t, "the node that the image is told", variable(job, "FLEX_SELECTED_NODE"), "node-that-has-gone")
}

// A force-deleted pod is read all the same: its node confirms that it has ended, and the next run
// starts after the usual backoff, not after the pod's deadline.
func TestForceDeletedPodIsFollowedByAnotherOnceItsNodeHasEndedIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "force")
	w.class(w.ns)
	w.config(ownNamespace, w.ns, scripted(deletes+"sleep 15\n"+offer, nil))
	claim := w.claim(w.ns, "data")
	var first corev1.Pod
	w.eventually(toBind, "the first pod to run", func(ctx context.Context) error {
		list, err := kube.CoreV1().Pods(ownNamespace).List(ctx, labelled("flex-provisioner.io/claim-uid="+string(claim.UID)))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		if i < 0 {
			return errors.New("none runs")
		}
		first = list.Items[i]
		return nil
	})
	w.must(kube.CoreV1().Pods(ownNamespace).Delete(w.ctx(), first.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "delete by force")
	w.bound(claim)
	equal(t, "runs", len(w.jobs(claim, "provision")), 2)
	w.eventually(toBind, "the first pod to go", func(ctx context.Context) error {
		_, err := kube.CoreV1().Pods(ownNamespace).Get(ctx, first.Name, metav1.GetOptions{})
		if err == nil {
			err = errors.New("it is there")
		}
		return known(err)
	})
}
