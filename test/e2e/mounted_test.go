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

// What the PV says is all that the kubelet of a node has: it logs in, makes the file system where
// there is none, and mounts.

const toMount = 2 * time.Minute

// read runs a command in a pod on a node with the claim at /data, returns what it printed, and
// deletes the pod.
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

// asDevice gives a container the claim as /dev/data.
func asDevice(spec *corev1.PodSpec) {
	spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	spec.Containers[0].VolumeMounts = nil
	spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}}
}

// lockedOut returns a pod after the event that its node is not let in by the target of the claim's
// volume.
func (w *world) lockedOut(claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	w.t.Helper()
	pod := shell("locked-out", "node1", "true", claim)
	w.pod(pod)
	made, err := kube.CoreV1().Pods(w.ns).Get(w.ctx(), pod.Name, metav1.GetOptions{})
	w.must(err, "read the pod")
	w.eventWithin(toMount, made, "FailedMount", "lets nobody in")
	return made
}

// The kubelet reports a volume as in use until it has unmounted it and logged out. A target that
// vanished under a mounted device would hang.
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
