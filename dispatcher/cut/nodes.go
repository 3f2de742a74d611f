package cut

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node keeps a node's labels, whether pods may go there, whether its kubelet ends them, and which
// volumes are attached.
func Node(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Conditions: readyCondition(node), VolumesInUse: AttachedTo(node)},
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

// mostVolumes is how many volumes are kept of a node. No node has as many attached. Its kubelet may
// write any number of names, and the caches have an index by each.
const mostVolumes = 5000

// AttachedTo returns the names of the volumes that a node's kubelet uses, or that are attached to
// it, sorted.
func AttachedTo(node *corev1.Node) []corev1.UniqueVolumeName {
	all := slices.Clone(node.Status.VolumesInUse)
	for _, v := range node.Status.VolumesAttached {
		all = append(all, v.Name)
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(name corev1.UniqueVolumeName) bool { return len(name) > longestText })
	return slices.Clone(all[:min(len(all), mostVolumes)])
}
