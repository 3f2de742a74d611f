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

// volumesOfNode has no volumes of a node that is out of service: its kubelet does not run, and
// never says that it has detached them.
func volumesOfNode(obj any) ([]string, error) {
	node := obj.(*corev1.Node)
	if slices.ContainsFunc(node.Spec.Taints, runs.IsOutOfService) {
		return nil, nil
	}
	var out []string
	for _, v := range cut.AttachedTo(node) {
		out = append(out, string(v))
	}
	return out, nil
}

// volumeOfPV indexes the released PVs that were written for a claim. The volumes of the others are
// not waited for.
func volumeOfPV(obj any) ([]string, error) {
	pv := obj.(*corev1.PersistentVolume)
	if name := pvs.NameOnNode(pv); name != "" && pv.Annotations[contract.AnnClaimUID] != "" && pvs.IsReleased(pv) {
		return []string{string(name)}, nil
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
	had, _ := volumesOfNode(old)
	var has []string
	if now != nil {
		has, _ = volumesOfNode(now)
	}
	for _, volume := range had {
		if _, still := slices.BinarySearch(has, volume); still {
			continue
		}
		for _, pv := range c.PVs.By(ByVolume, volume) {
			h.Detached(pv)
		}
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
