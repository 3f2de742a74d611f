package mapper

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// fibreChannel maps to the kubelet's fc plugin.
type fibreChannel struct{}

// fabric is Cinder's description of a Fibre Channel connection.
type fabric struct {
	WWN  oneOrMany[wwn] `json:"target_wwn"`
	LUN  number         `json:"target_lun"`
	WWNs []wwn          `json:"target_wwns"`
	LUNs []number       `json:"target_luns"`
	// WWID identifies the disk itself. Only some backends send it.
	WWID wwid `json:"wwn"`
}

// FibreChannel is what the config says about the nodes' ports.
type FibreChannel struct {
	// Ports is how many ports a volume is exported to.
	Ports int
	// SharedLUN says whether the array gives a volume the same LUN for each of them. It is nil where
	// the config does not say so.
	SharedLUN *bool
}

// Check allows many nodes, since the volume is exported to the ports of all of them. With more than
// one port the administrator has to say how the array numbers LUNs, which no connection shows.
func (fibreChannel) Check(w Want) error {
	if w.Fabric.Ports > 1 && w.Fabric.SharedLUN == nil {
		return unsupported("wwpns has %d ports, and a PersistentVolume has one LUN for all of them: on an array that gives each port a LUN of"+
			" its own, nodes would mount another claim's volume. Remedy: set shared-lun to true in the class or its config if the array"+
			" gives a volume the same LUN for all ports of wwpns, otherwise to false", w.Fabric.Ports)
	}
	return promises{name: w.disk("a Fibre Channel disk"), manyRead: true, manyWrite: w.Multiattach}.check(w)
}

// Map builds an fc source. A disk that identifies itself is always found by its name: a node may
// still have the device of a deleted volume under a LUN that the array has given to this one.
func (fibreChannel) Map(c volume.Connection, w Want) (Mapping, error) {
	var f fabric
	if err := decode(c, &f); err != nil {
		return Mapping{}, err
	}
	source := &corev1.FCVolumeSource{FSType: w.fsType()}
	mapping := Mapping{Source: corev1.PersistentVolumeSource{FC: source}}
	if f.WWID != "" {
		source.WWIDs = []string{string(f.WWID)}
		return mapping, nil
	}
	ways, err := f.ways()
	if err == nil {
		err = w.Fabric.check(ways)
	}
	if err != nil {
		return Mapping{}, err
	}
	mapping.Warnings = nameByLUN(source, ways)
	return mapping, nil
}

// nameByLUN names a disk by its ports and their LUN, of which Kubernetes has one for all ports. It
// returns a warning if some ports cannot be named.
func nameByLUN(s *corev1.FCVolumeSource, ways []way) []string {
	var warnings []string
	s.Lun = new(int32(ways[0].lun)) //nolint:gosec // check has compared it
	for _, one := range ways {
		switch {
		case one.lun == ways[0].lun:
			s.TargetWWNs = append(s.TargetWWNs, one.port)
		case warnings == nil:
			warnings = []string{fmt.Sprintf("an FC PersistentVolume has one LUN for all its ports, so ports that export the volume by another LUN"+
				" than %d are not used: the volume cannot be reached when the ports that are used fail", *s.Lun)}
		}
	}
	return warnings
}

// way is a port of the storage, and the LUN by which it exports the volume.
type way struct {
	port string
	lun  int64
}

// ways pairs ports and LUNs as os-brick does (_add_targets_to_connection_properties in
// os_brick/initiator/connectors/fibre_channel.py). A missing LUN, which os-brick takes for 0, is
// refused: no driver leaves it out, and LUN 0 may be another volume's.
func (f fabric) ways() ([]way, error) {
	ports, luns := f.lists()
	if err := checkWays(len(ports)); err != nil {
		return nil, err
	}
	if len(ports) > 0 && len(luns) != len(ports) {
		return nil, unsupported("the storage reports %d ports and %d LUNs of the volume, which cannot be paired", len(ports), len(luns))
	}
	var ways []way
	for i, port := range ports {
		isNamed := slices.ContainsFunc(ways, func(w way) bool { return w.port == string(port) })
		if port != "" && luns[i].known && !isNamed {
			ways = append(ways, way{string(port), luns[i].value})
		}
	}
	if len(ways) == 0 {
		return nil, unsupported("the storage reports no port or no LUN of the volume")
	}
	return ways, nil
}

// lists returns the ports and their LUNs: either form of the ports goes with either form of the LUNs,
// and one LUN is that of all ports.
func (f fabric) lists() ([]wwn, []number) {
	ports, luns := f.WWNs, f.LUNs
	if len(ports) == 0 {
		ports = f.WWN
	}
	if len(luns) == 0 {
		luns = []number{f.LUN}
	}
	if len(luns) == 1 {
		luns = slices.Repeat(luns, len(ports))
	}
	return ports, luns
}

// ownLUNs is how the ports of an array begin whose driver exports a volume to each port of the
// nodes by a LUN of its own, and reports only the last one: cinder/volume/drivers/infinidat.py,
// _initialize_connection_fc. 74-2B-0F is Infinidat in the names of its ports.
const ownLUNs = "5742b0f"

// check refuses a LUN that Kubernetes does not mount, or that only some ports of the nodes have.
func (f FibreChannel) check(ways []way) error {
	first := ways[0]
	switch {
	case first.lun < 0 || first.lun > maxLUN:
		return highLUN(first.lun, "other wwpns and another host")
	case f.Ports > 1 && strings.HasPrefix(first.port, ownLUNs):
		return unsupported("this array (Infinidat) gives a volume a LUN of its own for each of the %d ports in wwpns, and reports only that of the last"+
			" one: other nodes would mount another claim's volume. Remedy: use iSCSI of the array, or one port", f.Ports)
	case f.Ports > 1 && f.SharedLUN != nil && !*f.SharedLUN:
		return unsupported("shared-lun is false, and the storage does not identify the disk (wwn): LUN %d may be another claim's volume for some"+
			" of the %d ports in wwpns. Remedy: use iSCSI of the array, or one port", first.lun, f.Ports)
	default:
		return nil
	}
}
