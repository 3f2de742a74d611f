//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// storageLabel is on the nodes that the shipped configs select.
const storageLabel = "node-restriction.kubernetes.io/flex-storage-network"

// What refuses to a kubelet what is not its own: no policy of ours is needed.
var (
	byNodeRestriction = answer{"the admission plugin NodeRestriction", "not allowed to modify"}
	byNodeAuthorizer  = answer{"the authorizer Node", "no relationship found"}
)

// kubelet is the kubelet of a node, or whoever is root there.
func kubelet(node string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
}

// patchNode tries it without storing it.
func patchNode(node, change string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// Root of a node draws no runs of the shipped configs there, and so not the storage's login. A
// label of another domain, as the shipped configs once named, would do it.
func TestAKubeletDoesNotJoinTheNodesOfTheStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "join")
	w.removeSecrets()
	w.must(w.createSecret(w.ns, corev1.SecretTypeOpaque)(w.ctx(), kube), "create a login")
	const refusal, unrelated = "not allowed to modify", "no relationship found"
	labels := func(name, value string) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, name, value) }
	w.run([]attack{
		{"join the nodes of the storage", kubelet("node2"), patchNode("node2", labels(storageLabel, `"true"`)), refusal, byNodeRestriction},
		{"leave them", kubelet("node1"), patchNode("node1", labels(storageLabel, "null")), refusal, byNodeRestriction},
		{"join the nodes of the dispatcher", kubelet("node2"), patchNode("node2", labels(dispatcherLabel, `"yes"`)), refusal, byNodeRestriction},
		{"let another node leave them", kubelet("node2"), patchNode("node1", labels(storageLabel, "null")), refusal, byNodeRestriction},
		{"a taint of its own", kubelet("node2"), patchNode("node2", `{"spec":{"taints":[{"key":"attack","effect":"NoSchedule"}]}}`), refusal, byNodeRestriction},
		{"a login that no pod on it mounts", kubelet("node2"), getSecret(w.ns), unrelated, byNodeAuthorizer},
		{"a token of an account that no pod on it has", kubelet("node2"), w.unusedToken, unrelated, byNodeAuthorizer},
		{"a label of another domain", kubelet("node2"), patchNode("node2", labels("example.com/storage-network", `"true"`)), "", passes},
	}, true)
}

const dispatcherLabel = "node-restriction.kubernetes.io/flex-dispatcher"

// Whoever is root of a node has the token of a dispatcher that runs there. With the component
// dispatcher-nodes that is a node which an administrator has labelled.
func TestTheDispatcherRunsOnLabelledNodesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "labelled")
	dispatcher, err := kube.AppsV1().Deployments("flex-system").Get(w.ctx(), "flex-dispatcher", metav1.GetOptions{})
	w.must(err, "read the dispatcher's Deployment")
	equal(t, "the label of the nodes that it asks for", dispatcher.Spec.Template.Spec.NodeSelector[dispatcherLabel], "true")
}

// unusedToken asks for a token of an account that no pod has.
func (w *world) unusedToken(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(w.ns).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	return err
}

// Root of a node may write the annotations of its pods. A pod that says that it serves another
// claim does not hold that claim's run up.
func TestAPodOfANodeHoldsUpNoOtherClaimByWhatItsKubeletWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "rooted")
	gate := w.newGate()
	class, _ := w.service(scripted(deletes+fmt.Sprintf("until wget -q -O /dev/null %s; do sleep 1; done\n", gate.url)+offer, nil))
	held := w.claim(class, "held")
	w.reached(gate)
	other := w.ns + "-victim"
	w.class(other)
	victim := w.claim(other, "victim") // it has no config yet, and so no run
	w.pretendToServe(w.onlyPod(w.onlyJob(held, "provision")), held, victim)

	w.config(ownNamespace, other, scripted(deletes+offer, nil))
	w.bound(victim)
	if now := w.onlyPod(w.onlyJob(held, "provision")); now.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod that says so is %s: it held up nothing", now.Status.Phase)
	}
	gate.open()
	w.bound(held)
}

// pretendToServe lets the kubelet of a pod's node write on it that it serves these claims.
func (w *world) pretendToServe(pod corev1.Pod, claims ...*corev1.PersistentVolumeClaim) {
	w.t.Helper()
	text := ""
	for _, claim := range claims {
		text += "," + string(claim.UID)
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"flex-provisioner.io/uids": text[1:]}}})
	w.must(err, "encode the annotation")
	as := w.as(kubelet(pod.Spec.NodeName))
	_, err = as.CoreV1().Pods(pod.Namespace).Patch(w.ctx(), pod.Name, types.StrategicMergePatchType, change, metav1.PatchOptions{}, "status")
	w.must(err, "annotate the pod as its kubelet")
	now, err := kube.CoreV1().Pods(pod.Namespace).Get(w.ctx(), pod.Name, metav1.GetOptions{})
	w.must(err, "look at the pod")
	equal(w.t, "the annotation that the kubelet has written", now.Annotations["flex-provisioner.io/uids"], text[1:])
}
