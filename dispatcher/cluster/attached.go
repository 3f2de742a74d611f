package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Which volumes are attached: VolumeAttachments say so for CSI drivers, and the status of a node
// for every volume that is attached at all.

// volumesOfNode returns no volumes of a node that is out of service: its kubelet does not run, and
// never says that it has detached them.
func volumesOfNode(node *corev1.Node) cut.Volumes {
	if node == nil || slices.ContainsFunc(node.Spec.Taints, runs.IsOutOfService) {
		return ""
	}
	return cut.VolumesOf(node)
}

// NodeOf returns the name of a node whose status says that the volume of a PV is attached there, the
// first of several, or nothing.
func (c *Caches) NodeOf(pv *corev1.PersistentVolume) string {
	name := pvs.NameOnNode(pv)
	if name == "" {
		return ""
	}
	first, key := "", cut.VolumeKey(name)
	for _, obj := range c.Nodes[""].List() {
		if node := obj.(*corev1.Node); (first == "" || node.Name < first) && volumesOfNode(node).Has(key) {
			first = node.Name
		}
	}
	return first
}

// volumeOfPV indexes the released PVs that were written for a claim. The volumes of the others are
// not waited for.
func volumeOfPV(obj any) ([]string, error) {
	pv := cut.Whole(obj).(*corev1.PersistentVolume)
	if name := pvs.NameOnNode(pv); name != "" && pv.Annotations[contract.AnnClaimUID] != "" && pvs.IsReleased(pv) {
		return []string{cut.VolumeKey(name)}, nil
	}
	return nil, nil
}

func pvOfAttachment(obj any) ([]string, error) {
	if name := obj.(*storagev1.VolumeAttachment).Spec.Source.PersistentVolumeName; name != nil {
		return []string{*name}, nil
	}
	return nil, nil
}

// onNode returns a handler for the changes of a node's labels, and for volumes that it has no
// longer attached. Kubelets update their nodes all the time.
func (b *builder) onNode(h Handlers) cache.ResourceEventHandler {
	changed := func(node *corev1.Node) {
		h.Node(node)
		b.caches.detached(node, nil, h)
	}
	return onUpdate(changed, func(old, now *corev1.Node) {
		if !maps.Equal(old.Labels, now.Labels) {
			h.Node(old)
			h.Node(now)
		}
		b.caches.detached(old, now, h)
	})
}

// detached calls the handler with the released PVs whose volumes a node had attached and has no
// longer.
func (c *Caches) detached(old, now *corev1.Node, h Handlers) {
	var released []*corev1.PersistentVolume
	for _, key := range volumesOfNode(old).Without(volumesOfNode(now)) {
		released = append(released, c.PVs.By(ByVolume, key)...)
	}
	for _, pv := range sorted(released) { // the keys are in the order of chance
		h.Detached(pv)
	}
}

// onAttachment returns a handler for the end of VolumeAttachments of PVs that were written for a
// claim.
func (b *builder) onAttachment(h Handlers) cache.ResourceEventHandler {
	return onUpdate(func(a *storagev1.VolumeAttachment) {
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			if pv := b.caches.PVs.Named(*name); pv != nil && pv.Annotations[contract.AnnClaimUID] != "" {
				h.Detached(pv)
			}
		}
	}, func(_, _ *storagev1.VolumeAttachment) {})
}
