package input

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// selectedZone is the value of availability that means the zone of the selected node.
const selectedZone = "selected-node"

func zone(r contract.Request, c class) string {
	if c.zone == selectedZone {
		return r.SelectedZone
	}
	return c.zone
}

// restrictToZone lets pods use the PV only in the volume's zone, if that is the selected node's zone.
func (task *Task) restrictToZone(c class) error {
	if c.zone != selectedZone {
		return nil
	}
	if task.Request.SelectedZone == "" {
		return fault(contract.ExitConfig, errors.New("availability is "+selectedZone+", but no zone is known: the class needs"+
			" volumeBindingMode WaitForFirstConsumer, and the nodes the label "+corev1.LabelTopologyZone))
	}
	task.PV.Spec.NodeAffinity = affinity(task.Request.SelectedZone)
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
