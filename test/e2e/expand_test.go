//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// grows is what a script does on expand: nothing up to 3Gi, and no more than that.
const grows = `if [ $FLEX_VERB = expand ]; then
  [ $FLEX_SIZE -le 3221225472 ] || { echo "claim: this filer makes no volume larger than 3Gi"; exit 65; }
  exit 0
fi
`

const expandVerbs = "provision,delete,expand"

func expandable(class *storagev1.StorageClass) { class.AllowVolumeExpansion = new(true) }

// ask changes the size that a claim asks for.
func (w *world) ask(claim *corev1.PersistentVolumeClaim, size string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"spec": {"resources": {"requests": {"storage": %q}}}}`, size)
	_, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Patch(w.ctx(), claim.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "ask for "+size)
}

// growth is what a claim's status says of it, as kubectl would show it: capacity, allocated, the
// stage and the conditions of a resize. From Kubernetes 1.37 on there is one more, Unused
// (setUnusedCondition in pkg/controller/volume/pvcprotection).
func growth(claim *corev1.PersistentVolumeClaim) string {
	s := claim.Status
	conditions := []string{}
	for _, c := range s.Conditions {
		if isOfResize(c) {
			conditions = append(conditions, string(c.Type))
		}
	}
	return fmt.Sprintf("has %s allocated %s %q %v", s.Capacity.Storage(), s.AllocatedResources.Storage(),
		s.AllocatedResourceStatuses[corev1.ResourceStorage], conditions)
}

func isOfResize(c corev1.PersistentVolumeClaimCondition) bool {
	return slices.Contains([]corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
	}, c.Type)
}

// resizeMessage returns the message of the only condition of a resize.
func resizeMessage(claim *corev1.PersistentVolumeClaim) string {
	at := slices.IndexFunc(claim.Status.Conditions, isOfResize)
	if at < 0 {
		return ""
	}
	return claim.Status.Conditions[at].Message
}

// grown waits until the claim's status says so.
func (w *world) grown(claim *corev1.PersistentVolumeClaim, want string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	var now *corev1.PersistentVolumeClaim
	w.eventually(toBind, "the claim "+claim.Name+" to say: "+want, func(ctx context.Context) (err error) {
		if now, err = lookClaim(ctx, claim); err == nil && growth(now) != want {
			err = fmt.Errorf("it says: %s", growth(now))
		}
		return err
	})
	return now
}

// capacity is what the PV of a claim says.
func (w *world) capacity(claim *corev1.PersistentVolumeClaim) string {
	w.t.Helper()
	return w.pv(claim).Spec.Capacity.Storage().String()
}

// A file system of the storage's own has its size at once, and may have more than was asked for.
// One that cannot grow so far is infeasible until its user asks for less.
func TestClaimGrowsAndRecoversFromARefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "grow")
	class, _ := w.service(scripted(deletes+grows+offer, map[string]string{"verbs": expandVerbs}), expandable)
	claim := w.claim(class, "data")
	w.bound(claim)
	w.ask(claim, "2Gi")
	now := w.grown(claim, `has 2Gi allocated 2Gi "" []`)
	equal(t, "who grows it", now.Annotations["volume.kubernetes.io/storage-resizer"], "flex-provisioner.io")
	equal(t, "the PV's capacity", w.capacity(claim), "2Gi")
	w.event(claim, "Resizing", "to 2Gi", "expand-"+string(claim.UID)+"-1")
	w.event(claim, "VolumeResizeSuccessful", "2Gi")

	w.ask(claim, "5Gi")
	now = w.grown(claim, `has 2Gi allocated 5Gi "ControllerResizeInfeasible" [ControllerResizeError]`)
	contains(t, "the condition", resizeMessage(now), "no volume larger than 3Gi")
	w.event(claim, "VolumeResizeFailed", "no volume larger than 3Gi", "exit code 65")
	equal(t, "the PV's capacity", w.capacity(claim), "2Gi")

	w.ask(claim, "3Gi")
	w.grown(claim, `has 3Gi allocated 3Gi "" []`)
	equal(t, "the PV's capacity", w.capacity(claim), "3Gi")
}

// A volume of Cinder that is exported to a node grows while it is in use. The file system on such a
// device is not grown automatically: the claim says so until an administrator notes on the PV that
// it was done.
func TestCinderGrowsAVolumeInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "disk")
	class := w.expandableCinder()
	claim := w.claim(class, "data")
	w.bound(claim)
	equal(t, "the volume's status", w.onlyVolume(claim).Status, "in-use")
	w.ask(claim, "2Gi")
	now := w.grown(claim, `has 1Gi allocated 2Gi "NodeResizePending" [FileSystemResizePending]`)
	contains(t, "the condition", resizeMessage(now), "resize2fs")
	w.event(claim, "FileSystemResizeRequired", "the kubelet cannot expand a file system", "flex-provisioner.io/file-system-size=2Gi")
	equal(t, "GiB in Cinder", w.onlyVolume(claim).Size, 2)
	pv := w.pv(claim)
	equal(t, "the PV's capacity", pv.Spec.Capacity.Storage().String(), "2Gi")

	done := []byte(`{"metadata": {"annotations": {"flex-provisioner.io/file-system-size": "2Gi"}}}`)
	_, err := kube.CoreV1().PersistentVolumes().Patch(w.ctx(), pv.Name, types.MergePatchType, done, metav1.PatchOptions{})
	w.must(err, "say that the file system was grown")
	w.grown(claim, `has 2Gi allocated 2Gi "" []`)
	w.event(claim, "VolumeResizeSuccessful", "2Gi")
}

// A raw device has no file system: its claim has the size at once.
func TestExpansionOfABlockVolumeNeedsNoNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "block")
	claim := w.claim(w.expandableCinder(), "data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	})
	w.bound(claim)
	w.ask(claim, "2Gi")
	w.grown(claim, `has 2Gi allocated 2Gi "" []`)
	equal(t, "GiB in Cinder", w.onlyVolume(claim).Size, 2)
	equal(t, "events of a file system", len(w.notes(claim, "FileSystemResizeRequired")), 0)
}

func (w *world) expandableCinder() string {
	w.t.Helper()
	class, _ := w.service(cinderConfig(map[string]string{"verbs": expandVerbs}), parameter("type", "lvm"), expandable)
	return class
}

// Where the kubelet grows file systems, the dispatcher leaves it to the kubelet: the expansion ends
// when the next pod starts.
func TestKubeletGrowsTheFileSystemOfALocalVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "kubelet")
	w.class(w.ns, expandable, parameter("flex-provisioner.io/config-namespace", nodeNamespace), func(class *storagev1.StorageClass) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	w.config(nodeNamespace, w.ns, w.growingDirectory())
	claim := w.claim(w.ns, "data")
	w.pod(shell("first", "node1", "true", claim))
	w.output("first")
	w.bound(claim)
	w.deletePods("first")
	w.ask(claim, "2Gi")
	w.grown(claim, `has 1Gi allocated 2Gi "NodeResizePending" [FileSystemResizePending]`)
	w.event(claim, "FileSystemResizeRequired", "the kubelet expands its file system")
	w.pod(shell("second", "node1", "true", claim))
	w.output("second")
	w.grown(claim, `has 2Gi allocated 2Gi "" []`)
}

// growingDirectory is configmaps/node-directory.yaml with a script that, asked to grow a directory,
// has nothing to do.
func (w *world) growingDirectory() map[string]string {
	w.t.Helper()
	data := w.exampleConfig(directoryClass, directoryClass).Data
	data["verbs"] = expandVerbs
	data["script"] = directoryScript("[ \"$1\" != expand ] || exit 0\n")
	return data
}

// grow asks for more, and waits until the PV has it.
func (w *world) grow(claim *corev1.PersistentVolumeClaim, size string) {
	w.t.Helper()
	w.ask(claim, size)
	w.eventually(toBind, "the PV to have "+size, func(ctx context.Context) error {
		pv, err := kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+string(claim.UID), metav1.GetOptions{})
		if has := pv.Spec.Capacity.Storage().String(); err == nil && has != size {
			return fmt.Errorf("it has %s", has)
		}
		return err
	})
}
