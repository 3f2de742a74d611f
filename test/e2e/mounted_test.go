//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the PV says is all that the kubelet of a node has: it logs in, makes the file system where there is none, and mounts.

const toMount = 2 * time.Minute

// read runs a command in a pod on a node with the claim at /data, returns what it printed, and deletes the pod.
func (w *world) read(claim *corev1.PersistentVolumeClaim, node, command string, change ...func(*corev1.PodSpec)) string {
	w.t.Helper()
	name := fmt.Sprintf("%s-%s-%d", claim.Name, node, time.Now().UnixNano()%1e9)
	pod := writable(shell(name, node, command, claim))
	for _, c := range change {
		c(&pod.Spec)
	}
	w.pod(pod)
	out := w.output(name)
	w.deletePods(name)
	return out
}

// writable gives the volume of a pod to the group of the image's user.
func writable(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(65532))}
	return pod
}

func TestWhatIsWrittenOnOneNodeIsReadOnTheOther(t *testing.T) {
	t.Parallel()
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "mounted-"+fsType)
			w.class(w.ns, parameter("type", "lvm"), parameter("fsType", fsType), func(class *storagev1.StorageClass) { class.MountOptions = []string{"noatime"} })
			w.config(ownNamespace, w.ns, cinderConfig(nil))
			claim := w.claim(w.ns, "data")
			w.bound(claim)
			mounts := w.read(claim, "node1", "echo from node1 >/data/file; grep ' /data ' /proc/mounts")
			contains(t, "the mount", mounts, " "+fsType+" ")
			contains(t, "the mount's options", mounts, "noatime")
			equal(t, "the file on the other node", w.read(claim, "node2", "cat /data/file; echo from node2 >/data/file"), "from node1\n")
			equal(t, "the file back on the first node", w.read(claim, "node1", "cat /data/file", readOnly), "from node2\n")
		})
	}
}

// readOnly mounts the claim without the right to write, and proves it.
func readOnly(spec *corev1.PodSpec) {
	spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	command := &spec.Containers[0].Command[2]
	*command = "if touch /data/other 2>/dev/null; then exit 1; fi; " + *command
}

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

// asDevice gives a container the claim as /dev/data.
func asDevice(spec *corev1.PodSpec) {
	spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	spec.Containers[0].VolumeMounts = nil
	spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}}
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

// lockedOut returns a pod after the event that its node is not let in by the target of the claim's volume.
func (w *world) lockedOut(claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	w.t.Helper()
	pod := shell("locked-out", "node1", "true", claim)
	w.pod(pod)
	made, err := kube.CoreV1().Pods(w.ns).Get(w.ctx(), pod.Name, metav1.GetOptions{})
	w.must(err, "read the pod")
	w.eventWithin(toMount, made, "FailedMount", "lets nobody in")
	return made
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

// The kubelet reports a volume as in use until it has unmounted it and logged out. A target that vanished under a mounted device would hang.
func TestAVolumeIsNotDeletedBeforeItsNodeHasLoggedOut(t *testing.T) {
	w := newWorld(t, "in-use")
	claim := w.claim(cinderClass, "data")
	pv := w.bound(claim)
	w.pod(shell("holder", "node2", "sleep 600", claim))
	w.eventually(toMount, "the pod to run, its volume mounted", func(ctx context.Context) error { return runs(ctx, w.ns, "holder") })
	w.eventually(toMount, "the volume to be in use", func(ctx context.Context) error { return inUse(ctx, "node2", pv.Name) })
	w.kubelet("2", "STOP")
	w.whenDone(func() { w.kubelet("2", "CONT") })
	w.must(kube.CoreV1().Pods(w.ns).Delete(w.ctx(), "holder", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "delete the pod by force")
	w.deleteClaim(claim)
	w.eventually(toBind, "the PV to be released", func(ctx context.Context) error {
		now, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
		if err == nil && now.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("its phase is %s", now.Status.Phase)
		}
		return err
	})
	w.always(8*time.Second, "no delete while the node has the volume", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "delete")
		if err == nil && len(jobs) > 0 {
			err = fmt.Errorf("there are %v", names(jobs))
		}
		return err
	})
	contains(t, "tgtd's targets", w.targets(), pv.Spec.ISCSI.IQN)
	w.kubelet("2", "CONT")
	w.vanished(claim)
}

// The attacher of a CSI driver says by a VolumeAttachment that a node has a volume.
func TestAVolumeIsNotDeletedWhileAVolumeAttachmentNamesItsPV(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "attached")
	claim := w.claim(cinderClass, "data")
	pv := w.bound(claim)
	attachments := kube.StorageV1().VolumeAttachments()
	_, err := attachments.Create(w.ctx(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: "node2", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
	}, metav1.CreateOptions{})
	w.must(err, "create a VolumeAttachment")
	w.whenDone(func() { w.gone(attachments.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "VolumeAttachment "+w.ns) })
	w.deleteClaim(claim)
	w.eventWithin(time.Minute+toBind, pv, "VolumeInUse", "the node node2", "the VolumeAttachment "+w.ns)
	jobs, err := jobsOf(w.ctx(), string(claim.UID), "delete")
	w.must(err, "list the claim's Jobs")
	equal(t, "the Jobs that delete the volume", fmt.Sprint(names(jobs)), "[]")
	w.must(attachments.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "delete the VolumeAttachment")
	w.vanished(claim)
}

// runs returns an error unless the containers of a pod run, for which its volumes are mounted.
func runs(ctx context.Context, namespace, name string) error {
	pod, err := kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && pod.Status.Phase != corev1.PodRunning {
		err = fmt.Errorf("its phase is %s", pod.Status.Phase)
	}
	return err
}

// kubelet sends a signal to the kubelet of a node.
func (w *world) kubelet(node, signal string) {
	w.t.Helper()
	_, err := onNode(w.ctx(), node, "pkill", "-"+signal, "-x", "kubelet")
	w.must(err, "send "+signal+" to the kubelet")
}

// inUse returns an error unless a node reports a PV's volume as in use.
func inUse(ctx context.Context, node, pv string) error {
	at, err := kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	volume, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, used := range at.Status.VolumesInUse {
		if strings.Contains(string(used), volume.Spec.ISCSI.IQN) {
			return nil
		}
	}
	return fmt.Errorf("the volumes of %s in use are %v", node, at.Status.VolumesInUse)
}
