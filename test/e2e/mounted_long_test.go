//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What else a kubelet does by the PV alone. That it mounts a volume at all is shown by make e2e.

func TestAPodsGroupOwnsItsVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "fs-group")
	claim := w.claim(cinderClass, "data")
	asUser := func(spec *corev1.PodSpec) {
		spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), FSGroup: new(int64(2000))}
	}
	equal(t, "the group of the volume and of a file", w.read(claim, "node2", "touch /data/file; stat -c %g /data /data/file", asUser), "2000\n2000\n")
}

func TestARawBlockVolumeIsReadOnTheOtherNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "raw")
	claim := w.claim(cinderClass, "raw", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })
	w.read(claim, "node1", "echo from node1 | dd of=/dev/data bs=512 seek=2000000 conv=sync,fsync", asDevice)
	equal(t, "the block on the other node", w.read(claim, "node2", "dd if=/dev/data bs=512 skip=2000000 count=1 2>/dev/null | head -c 11", asDevice), "from node1\n")
}

func TestACloneHasTheDataOfItsSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "clone-data")
	class := w.cloning()
	source := w.claim(class, "original")
	w.read(source, "node1", "echo original >/data/file")
	copied := w.claim(class, "copy", from("original"))
	equal(t, "the file of the clone", w.read(copied, "node2", "cat /data/file; echo changed >/data/file"), "original\n")
	equal(t, "the file of the source", w.read(source, "node1", "cat /data/file"), "original\n")
}

// addressesOf prints the portal of each session with a target, as the kernel shows them.
const addressesOf = `
grep -rls "$1" /sys/class/iscsi_host --include targetname | while read -r name; do
  cat "${name%/iscsi_session/*}"/connection*/iscsi_connection/connection*/address
done | sort`

func TestAVolumeWithTwoPortalsIsMounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "two-portals")
	w.class(w.ns, parameter("type", "lvmmp"))
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"multipath": "true"}))
	claim := w.claim(w.ns, "data")
	source := w.bound(claim).Spec.ISCSI
	equal(t, "the PV's portals", fmt.Sprint(append([]string{source.TargetPortal}, source.Portals...)), "[10.250.0.1:3260 10.250.0.2:3260]")
	w.pod(shell("holder", "node1", "sleep 600", claim))
	w.eventually(toMount, "the pod to run, its volume mounted", func(ctx context.Context) error { return runs(ctx, w.ns, "holder") })
	portals, err := onNode(w.ctx(), "1", "bash", "-c", addressesOf, "addresses-of", source.IQN)
	w.must(err, "look for the node's sessions")
	equal(t, "the portals that the node is logged in to", portals, "10.250.0.1\n10.250.0.2")
	w.deletePods("holder")
	w.read(claim, "node1", "echo by two portals >/data/file")
	equal(t, "the file on the other node", w.read(claim, "node2", "cat /data/file"), "by two portals\n")
}

func TestAPodWithAWrongPasswordOfItsVolumeDoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "wrong-password")
	claim := w.claim(cinderClass, "data")
	ref := w.bound(claim).Spec.ISCSI.SecretRef
	secrets := kube.CoreV1().Secrets(ref.Namespace)
	right, err := secrets.Get(w.ctx(), ref.Name, metav1.GetOptions{})
	w.must(err, "read the Secret")
	wrong := right.DeepCopy()
	wrong.Data["node.session.auth.password"] = []byte("aaaaaaaaaaaaaaaa")
	_, err = secrets.Update(w.ctx(), wrong, metav1.UpdateOptions{})
	w.must(err, "write a wrong password")

	pod := w.lockedOut(claim)
	w.deletePods(pod.Name)
}

func TestAGrownVolumeIsSeenAfterThePodsRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "grown")
	w.class(w.ns, parameter("type", "lvm"), expandable)
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"verbs": expandVerbs}))
	claim := w.claim(w.ns, "data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })
	const size = "dd if=/dev/data bs=1M count=1 skip=1500 2>/dev/null | wc -c"
	equal(t, "bytes behind the end", w.read(claim, "node1", size, asDevice), "0\n")
	w.grow(claim, "2Gi")
	equal(t, "bytes behind the old end", w.read(claim, "node1", size, asDevice), "1048576\n")
}
