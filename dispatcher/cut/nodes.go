package cut

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node keeps a node's labels, whether pods may go there, whether its kubelet ends them, and the keys of
// the volumes that are attached.
func Node(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Conditions: readyCondition(node), VolumesInUse: volumesOf(node)},
	}
}

// cutAttachment keeps the PV and the node of a VolumeAttachment.
func cutAttachment(a *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name, UID: a.UID, ResourceVersion: a.ResourceVersion},
		Spec: storagev1.VolumeAttachmentSpec{
			NodeName: a.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName},
		},
	}
}

// readyCondition returns a node's condition Ready without its times, which every heartbeat changes.
func readyCondition(node *corev1.Node) []corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return []corev1.NodeCondition{{Type: c.Type, Status: cutText(c.Status)}}
		}
	}
	return nil
}

// keySize is the size of a volume's key, in bytes.
const keySize = 8

// seed is another in each process, so that no name can be chosen for its key.
var seed = maphash.MakeSeed()

// VolumeKey returns what the caches keep of the name that a node has for a volume.
func VolumeKey(name corev1.UniqueVolumeName) string {
	return string(binary.BigEndian.AppendUint64(nil, maphash.String(seed, string(name))))
}

// cutMark begins the Volumes of a node that was cut. A kubelet may write any bytes, and cannot know it.
var cutMark = VolumeKey("")

// Volumes are the keys of the volumes that a node's kubelet uses, or that are attached to it: one after
// the other, sorted.
//
// A pod may have thousands of inline volumes, which kube-controller-manager reports as attached, and a
// kubelet may write any names. Only the first 5,000 names were kept once. Names that sort before those of
// others then hid them, and their volumes were deleted while they were mounted
// (TestCachesKeepAllVolumesOfANode). All names as they are, with an index, took 3 MB of one node.
type Volumes string

// VolumesOf returns those of a node that was cut.
func VolumesOf(node *corev1.Node) Volumes {
	if len(node.Status.VolumesInUse) != 1 || !strings.HasPrefix(string(node.Status.VolumesInUse[0]), cutMark) {
		return ""
	}
	return Volumes(strings.TrimPrefix(string(node.Status.VolumesInUse[0]), cutMark))
}

// volumesOf returns those of a node in the place where VolumesOf finds them.
func volumesOf(node *corev1.Node) []corev1.UniqueVolumeName {
	if VolumesOf(node) != "" {
		return node.Status.VolumesInUse
	}
	var keys []string
	for _, name := range node.Status.VolumesInUse {
		keys = append(keys, VolumeKey(name))
	}
	for _, v := range node.Status.VolumesAttached {
		keys = append(keys, VolumeKey(v.Name))
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	return []corev1.UniqueVolumeName{corev1.UniqueVolumeName(cutMark + strings.Join(slices.Compact(keys), ""))}
}

// Has reports whether a volume is among them.
func (v Volumes) Has(key string) bool {
	_, found := sort.Find(len(v)/keySize, func(i int) int { return strings.Compare(key, v.at(i)) })
	return found
}

// Without returns the keys that others do not have.
func (v Volumes) Without(others Volumes) (keys []string) {
	if v == others { // as after most heartbeats
		return nil
	}
	for i := range len(v) / keySize {
		if key := v.at(i); !others.Has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (v Volumes) at(i int) string { return string(v[i*keySize:][:keySize]) }
