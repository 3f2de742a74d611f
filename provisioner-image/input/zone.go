package input

import (
	"errors"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Values of availability that name no zone.
const (
	// selectedZone means the zone of the selected node.
	selectedZone = "selected-node"
	// ignoredZone means that the storage's zones are not those of the nodes, so that every node
	// reaches every volume.
	ignoredZone = "ignore"
)

// setZone says in which zone the storage is asked to make the volume, in which zones the volume may
// be, and whether pods can use it only there. For a volume with content no zone is asked for: Cinder
// makes a clone in the zone of its source, and refuses any other, by cloned_volume_same_az
// (_extract_availability_zones in cinder/volume/flows/api/create_volume.py).
func (task *Task) setZone(c class) error {
	r, v := task.Request, &task.Volume
	v.Zones = zones(r, c)
	if c.zone == selectedZone && len(v.Zones) == 0 {
		return fault(contract.ExitConfig, errors.New("availability is "+selectedZone+", but the claim's zone is unknown: set"+
			" volumeBindingMode WaitForFirstConsumer in the class, and label the nodes with "+corev1.LabelTopologyZone+
			"; or name zones in the class's allowedTopologies"))
	}
	task.InZone = c.zone == selectedZone || c.zone == "" && len(v.Zones) > 0
	v.AnyZone = c.zone == ignoredZone
	if c.namesZone() {
		task.NodeZones = allowedZones(r)
	}
	if !v.AnyZone && !v.HasContent() && r.Source == nil && len(v.Zones) > 0 {
		v.Zone = pick(v.Zones, r.UID)
		v.Zones = []string{v.Zone}
	}
	return nil
}

// namesZone reports whether the class names a zone of Cinder.
func (c class) namesZone() bool {
	return c.zone != "" && c.zone != selectedZone && c.zone != ignoredZone
}

// zones returns where the volume may be: in the zone that the class names, in that of the selected
// node, or in those that the class's allowedTopologies name. There are none if it may be anywhere.
func zones(r contract.Request, c class) []string {
	switch allowed := allowedZones(r); {
	case c.namesZone():
		return []string{c.zone}
	case c.zone == "" && len(allowed) == 0:
		return nil
	case r.SelectedZone != "" && (len(allowed) == 0 || slices.Contains(allowed, r.SelectedZone)):
		return []string{r.SelectedZone}
	default:
		return allowed
	}
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
