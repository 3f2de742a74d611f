package audit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// places finds the nodes of PVs. A PV may call its node by its name or by its hostname.
type places struct {
	all    []*corev1.Node
	called map[string][]*corev1.Node
}

func placesOf(nodes []*corev1.Node) places {
	p := places{all: nodes, called: map[string][]*corev1.Node{}}
	for _, node := range nodes {
		host := node.Labels[corev1.LabelHostname]
		p.called[node.Name] = append(p.called[node.Name], node)
		if host != node.Name {
			p.called[host] = append(p.called[host], node)
		}
	}
	return p
}

// of returns the nodes from which a PV's volume is reachable.
func (p places) of(pv *corev1.PersistentVolume) []*corev1.Node {
	if name := pvs.NodeOf(pv); name != "" { // to compare each PV with each node would take too long
		return pvs.Reachable(pv, p.called[name])
	}
	return pvs.Reachable(pv, p.all)
}

// isOn reports whether the volume of a PV may be on a node. Without a name it is in a storage that
// is not on nodes. If the PV's node no longer exists, its disk may be in any.
func (p places) isOn(pv *corev1.PersistentVolume, node string) bool {
	nodes := p.of(pv)
	return node == "" || pvs.NodesOf(pv) == nil || len(nodes) == 0 ||
		slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return n.Name == node })
}

// wasLookedFor reports whether the list that would have the volume of a PV was made. On nodes that
// is each from which the volume is reachable, and there is none if the node no longer exists.
func (x *index) wasLookedFor(pv *corev1.PersistentVolume) bool {
	lists, onNodes := x.OnNodes[pv.Spec.StorageClassName]
	if !onNodes {
		return true
	}
	nodes := x.of(pv)
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *corev1.Node) bool { _, was := lists[n.Name]; return !was })
}

// PVsOn returns how many PVs of a class have their volume on each node, by its name. Those whose
// nodes no longer exist count by what the PVs call their node, which is empty for several nodes. A
// PV that is being deleted there is a finding of its own.
func PVsOn(s State, class string) (on, gone map[string]int) {
	p := placesOf(s.Nodes)
	on, gone = map[string]int{}, map[string]int{}
	for _, pv := range s.PVs {
		if pv.Spec.StorageClassName != class || pv.Annotations[contract.AnnClaimUID] == "" || pvs.NodesOf(pv) == nil {
			continue
		}
		nodes := p.of(pv)
		for _, node := range nodes {
			on[node.Name]++
		}
		if len(nodes) == 0 && pv.DeletionTimestamp == nil {
			gone[pvs.NodeOf(pv)]++
		}
	}
	return on, gone
}

// NodeNamed returns a node, or nil.
func (s *State) NodeNamed(name string) *corev1.Node {
	if i := slices.IndexFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == name }); i >= 0 {
		return s.Nodes[i]
	}
	return nil
}

// At says on which node a volume was listed. It is empty if its storage is not on nodes.
func (f Finding) At() string {
	if f.Node == "" {
		return ""
	}
	return " on the node " + f.Node
}
