package input

import (
	"errors"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// selectedZone is the value of availability that means the zone of the selected node.
const selectedZone = "selected-node"

// zone returns where the volume is made: where the class says or, if it does not, in a zone that
// its allowedTopologies name. It is "" where neither says it: the storage chooses.
func zone(r contract.Request, c class) string {
	if !followsNodes(r, c) {
		return c.zone
	}
	allowed := allowedZones(r)
	switch {
	case r.SelectedZone != "" && (len(allowed) == 0 || slices.Contains(allowed, r.SelectedZone)):
		return r.SelectedZone
	case len(allowed) > 0:
		return pick(allowed, r.UID)
	default:
		return ""
	}
}

// followsNodes reports whether the volume is made in a zone of the nodes, so that only pods there
// can use it.
func followsNodes(r contract.Request, c class) bool {
	return c.zone == selectedZone || c.zone == "" && len(allowedZones(r)) > 0
}

// allowedZones returns the zones that the class's allowedTopologies name, sorted. There are none if
// one of the alternatives names no zone: then any will do.
func allowedZones(r contract.Request) []string {
	var zones []string
	for _, alternative := range r.AllowedTopologies {
		if len(alternative[corev1.LabelTopologyZone]) == 0 {
			return nil
		}
		zones = append(zones, alternative[corev1.LabelTopologyZone]...)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// pick spreads claims over zones. A claim has the same zone in every run.
func pick(zones []string, uid string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // a hash accepts everything
	return zones[int(hash.Sum32()>>1)%len(zones)]
}

// restrictToZone lets pods use the PV only in the volume's zone, if that is a zone of the nodes.
func (task *Task) restrictToZone(c class) error {
	if !followsNodes(task.Request, c) {
		return nil
	}
	where := zone(task.Request, c)
	if where == "" {
		return fault(contract.ExitConfig, errors.New("availability is "+selectedZone+", but the claim's zone is unknown: set"+
			" volumeBindingMode WaitForFirstConsumer in the class, and label the nodes with "+corev1.LabelTopologyZone+
			"; or name zones in the class's allowedTopologies"))
	}
	task.PV.Spec.NodeAffinity = affinity(where)
	return nil
}

func affinity(zone string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
			}},
		}},
	}}
}
