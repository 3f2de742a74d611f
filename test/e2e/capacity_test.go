//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumesOfNodes is a directory of each node that volumes are made in.
const volumesOfNodes = "/var/lib/flex-volumes"

// fullNode1 is a script that offers a directory of the selected node, except that node1 has no room.
const fullNode1 = deletes + `[ "$FLEX_SELECTED_NODE" != node1 ] || { echo "claim: node1 has no room" >/dev/termination-log; exit 73; }
echo '{"source": {"hostPath": {"path": "` + volumesOfNodes + `/'"$FLEX_PV_NAME"'", "type": "DirectoryOrCreate"}}}' >/dev/termination-log
`

// within makes a pod that goes only to nodes with the test's label, and of these to node1, if it can.
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

// runsOn waits until a provision run was launched for a node.
func (w *world) runsOn(claim *corev1.PersistentVolumeClaim, node string) {
	w.t.Helper()
	w.eventually(toBind, "a run for "+node, func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "provision")
		if err == nil && !slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return variable(job, "FLEX_SELECTED_NODE") == node }) {
			err = errors.New("there is none")
		}
		return err
	})
}

// sized is a change of a claim: the size that it asks for.
func sized(size string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// returns are the notes about returns of a claim to the scheduler: after a run, and without one.
func returns(ctx context.Context, claim *corev1.PersistentVolumeClaim) (after, without []string, err error) {
	notes, err := notesOf(ctx, claim, "Rescheduling")
	for _, note := range notes {
		if strings.Contains(note, "no run is started here") {
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

// The scheduler can select only the full node, again and again, which the dispatcher does not know. No run is
// started there, and as soon as the scheduler selects the other node, the claim is provisioned.
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
	w.event(claim, "Rescheduling", "node1 is selected again", "exit code 73", "the node node2 may have room", "return 2 since the last run")
	w.deletePods("consumer")
	w.deleteClaim(claim)
	w.vanished(claim)
}

// capacities are the objects that are published for a class.
func capacities(ctx context.Context, namespace, class string) ([]storagev1.CSIStorageCapacity, error) {
	list, err := kube.StorageV1().CSIStorageCapacities(namespace).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list the CSIStorageCapacities: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(c storagev1.CSIStorageCapacity) bool { return c.StorageClassName != class }), nil
}

// publishes starts a dispatcher of the test's own that publishes capacity, and makes a class of its own. It returns
// the provisioner's name, which has no slash.
func (w *world) publishes(script string) (*process, string) {
	w.t.Helper()
	provisioner := w.ns + ".e2e.example.com"
	w.remove(func() {
		w.gone(kube.StorageV1().CSIDrivers().Delete(w.ctx(), provisioner, metav1.DeleteOptions{}), "CSIDriver "+provisioner)
	})
	w.class(w.ns, firstConsumer, func(c *storagev1.StorageClass) { c.Provisioner = provisioner }, parameter("flex-provisioner.io/config-namespace", w.ns))
	w.config(w.ns, w.ns, scripted(script, nil))
	w.bindCapacity(provisioner)
	p := w.started("--publish-capacity", "--provisioner-name="+provisioner, "--allow="+w.ns+"/host-path="+volumesOfNodes)
	w.eventually(toBind, "the CSIDriver, after the capacity of the class", func(ctx context.Context) error {
		driver, err := kube.StorageV1().CSIDrivers().Get(ctx, provisioner, metav1.GetOptions{})
		if err != nil {
			return err
		}
		equal(w.t, "the scheduler reads its capacity", *driver.Spec.StorageCapacity, true)
		equal(w.t, "its volumes are attached", *driver.Spec.AttachRequired, false)
		found, err := capacities(ctx, w.ns, w.ns)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("the class has %d objects", len(found))
		}
		return err
	})
	return p, provisioner
}

// The scheduler prefers the full node, and does not select it a second time: it has no capacity for the claim.
func TestPublishedCapacityKeepsPodsFromAFullNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "capacity")
	p, provisioner := w.publishes(fullNode1)
	claim := w.claim(w.ns, "data")
	w.open("node1")
	w.pod(w.within(claim))
	w.runsOn(claim, "node1")
	w.open("node2")
	w.bound(claim)
	equal(t, "what the consumer read", w.output("consumer"), "it is here\n")
	equal(t, "nodes of the runs", w.provisionedOn(claim), "node1 node2")
	after, without, err := returns(w.ctx(), claim)
	w.must(err, "look at the returns of "+claim.Name)
	if len(after) != 1 || len(without) != 0 {
		t.Errorf("returned after a run: %q; without one: %q; want one return, since the scheduler knows that node1 is full", after, without)
	}
	found, err := capacities(w.ctx(), w.ns, w.ns)
	w.must(err, "look at the capacity")
	asked := claim.Spec.Resources.Requests.Storage().Value()
	equal(t, "objects of the class while node1 is full", len(found), 2)
	for _, c := range found {
		if limit := c.MaximumVolumeSize; limit != nil {
			equal(t, "the largest volume on node1", limit.Value(), asked-1)
		}
	}

	w.deletePods("consumer")
	w.deleteClaim(claim)
	w.vanished(claim)
	w.must(w.stop(p, syscall.SIGTERM), "end the dispatcher")
	said, err := w.uninstall("--provisioner-name=" + provisioner)
	contains(t, "what uninstall says", said, "1 CSIDriver and 2 CSIStorageCapacities of the dispatcher are deleted")
	if err == nil {
		t.Error("uninstall without --yes has left nothing to do")
	}
	said, err = w.uninstall("--provisioner-name="+provisioner, "--yes")
	w.must(err, "uninstall: "+said)
	w.eventually(toBind, "nothing to be published", func(ctx context.Context) error {
		left, err := capacities(ctx, w.ns, w.ns)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d CSIStorageCapacities are left", len(left))
		}
		if _, missing := kube.StorageV1().CSIDrivers().Get(ctx, provisioner, metav1.GetOptions{}); !apierrors.IsNotFound(missing) {
			err = errors.Join(err, errors.New("the CSIDriver is left"))
		}
		return err
	})
}

// While every node is full, the pod waits, and it is scheduled when there is capacity again: for what is smaller at
// once, and for the claim itself after 5 minutes. Only the first is waited for here.
func TestPublishedCapacityAdmitsASmallerClaimOnFullNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "smaller")
	w.publishes(deletes + `[ "$FLEX_SIZE" -lt 1000000000 ] || { echo "claim: no node has room" >/dev/termination-log; exit 73; }
echo '{"source": {"hostPath": {"path": "` + volumesOfNodes + `/'"$FLEX_PV_NAME"'", "type": "DirectoryOrCreate"}}}' >/dev/termination-log
`)
	large := w.claim(w.ns, "large", sized("1Gi"))
	w.pod(shell("consumer", "", "echo it is here", large))
	w.eventually(2*time.Minute, "both nodes to be full", func(ctx context.Context) error {
		found, err := capacities(ctx, w.ns, w.ns)
		if err == nil && len(found) != 3 {
			err = fmt.Errorf("the class has %d objects", len(found))
		}
		return err
	})
	small := w.claim(w.ns, "small", sized("512Mi"))
	pod := shell("small", "", "echo it fits", small)
	w.pod(pod)
	w.bound(small)
	equal(t, "what the small one's pod read", w.output("small"), "it fits\n")
	equal(t, "runs for the large one", len(w.jobs(large, "provision")), 2)
	w.eventually(toBind, "the large one to be returned from the second node, too", func(ctx context.Context) error {
		now, err := lookClaim(ctx, large)
		if err == nil && now.Annotations[annSelectedNode] != "" {
			err = fmt.Errorf("its node is %s", now.Annotations[annSelectedNode])
		}
		return err
	})
	w.deletePods("consumer", "small")
	w.deleteClaim(small)
	w.vanished(small)
}
