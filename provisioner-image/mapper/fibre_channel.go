package mapper

import (
	"fmt"
	"slices"

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

// Check allows many nodes, since the volume is exported to the ports of all of them.
func (fibreChannel) Check(w Want) error {
	return promises{name: w.disk("a Fibre Channel disk"), manyRead: true, manyWrite: w.Multiattach}.check(w)
}

// Map builds an fc source.
func (fibreChannel) Map(c volume.Connection, w Want) (Mapping, error) {
	var f fabric
	if err := decode(c, &f); err != nil {
		return Mapping{}, err
	}
	source := &corev1.FCVolumeSource{FSType: w.fsType(), ReadOnly: w.ReadOnly}
	if err := f.name(source); err != nil {
		return Mapping{}, err
	}
	return Mapping{Source: corev1.PersistentVolumeSource{FC: source}, Warnings: f.warnings(source)}, nil
}

// name identifies the disk: by its ports and their LUN, or by its WWID where the ports have
// different LUNs or a LUN that Kubernetes does not mount. Kubernetes has one LUN for all ports.
func (f fabric) name(s *corev1.FCVolumeSource) error {
	ports, lun := f.ports()
	fits := lun.known && lun.value >= 0 && lun.value <= maxLUN
	switch {
	case f.WWID != "" && (!f.hasOneLUN() || !fits):
		s.WWIDs = []string{string(f.WWID)}
		return nil
	case len(ports) == 0 || !lun.known:
		return unsupported("the storage reports no port or no LUN of the volume")
	case !fits:
		return highLUN(lun.value, "other wwpns and another host")
	default:
		s.TargetWWNs, s.Lun = ports, new(int32(lun.value)) //nolint:gosec // it fits
		return nil
	}
}

// warnings returns a warning if some ports cannot be named in the source.
func (f fabric) warnings(s *corev1.FCVolumeSource) []string {
	if len(s.WWIDs) > 0 || f.hasOneLUN() {
		return nil
	}
	return []string{fmt.Sprintf("an FC PersistentVolume has one LUN for all its ports, so ports that export the volume by another LUN than %d are not used:"+
		" the volume cannot be reached when the ports that are used fail", *s.Lun)}
}

// ports returns the ports that export the volume with the same LUN as the first port, and that LUN.
func (f fabric) ports() ([]string, number) {
	ports, luns := []wwn(f.WWN), slices.Repeat([]number{f.LUN}, len(f.WWN))
	if len(f.WWNs) > 0 && len(f.LUNs) == len(f.WWNs) {
		ports, luns = f.WWNs, f.LUNs
	}
	if len(ports) == 0 {
		return nil, f.LUN
	}
	var same []string
	for i, port := range ports {
		if luns[i] == luns[0] && port != "" && !slices.Contains(same, string(port)) {
			same = append(same, string(port))
		}
	}
	return same, luns[0]
}

func (f fabric) hasOneLUN() bool {
	return !slices.ContainsFunc(f.LUNs, func(lun number) bool { return lun != f.LUNs[0] })
}
