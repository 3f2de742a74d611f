package mapper

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// fibreChannel maps to the kubelet's fc plugin.
type fibreChannel struct{}

// fabric is Cinder's description of a Fibre Channel connection.
type fabric struct {
	WWN  stringOrList `json:"target_wwn"`
	LUN  int32        `json:"target_lun"`
	WWNs []string     `json:"target_wwns"`
	LUNs []int32      `json:"target_luns"`
	// WWID identifies the disk itself. Only some backends send it.
	WWID string `json:"wwn"`
}

// Check allows many readers, since the volume is exported to the ports of all nodes.
func (fibreChannel) Check(w Want) error {
	return promises{name: "a Fibre Channel disk", manyRead: true}.check(w)
}

// Map builds an fc source.
func (fibreChannel) Map(c volume.Connection, w Want) (Mapping, error) {
	var f fabric
	if err := c.Decode(&f); err != nil {
		return Mapping{}, err
	}
	source := &corev1.FCVolumeSource{FSType: w.fsType(), ReadOnly: w.ReadOnly}
	if err := f.name(source); err != nil {
		return Mapping{}, err
	}
	return Mapping{Source: corev1.PersistentVolumeSource{FC: source}}, nil
}

// name identifies the disk: by its ports and their LUN, or by its WWID where the ports have different LUNs or a LUN
// that Kubernetes does not mount. Kubernetes has one LUN for all ports.
func (f fabric) name(s *corev1.FCVolumeSource) error {
	ports, lun := f.ports()
	fits := lun >= 0 && lun <= maxLUN
	switch {
	case f.WWID != "" && (!f.hasOneLUN() || !fits):
		s.WWIDs = []string{f.WWID}
		return nil
	case len(ports) == 0:
		return unsupported("the storage names no port of the volume")
	case !fits:
		return unsupported("the storage exported LUN %d, Kubernetes mounts 0 to %d", lun, maxLUN)
	default:
		s.TargetWWNs, s.Lun = ports, &lun
		return nil
	}
}

// ports returns the ports that export the volume with the same LUN as the first port, and that LUN.
func (f fabric) ports() ([]string, int32) {
	ports, luns := []string(f.WWN), slices.Repeat([]int32{f.LUN}, len(f.WWN))
	if len(f.WWNs) > 0 && len(f.LUNs) == len(f.WWNs) {
		ports, luns = f.WWNs, f.LUNs
	}
	if len(ports) == 0 {
		return nil, f.LUN
	}
	var same []string
	for i, port := range ports {
		port = spelled(port)
		if luns[i] == luns[0] && !slices.Contains(same, port) {
			same = append(same, port)
		}
	}
	return same, luns[0]
}

// spelled returns a port's name as the kubelet spells it.
func spelled(port string) string { return strings.ToLower(strings.ReplaceAll(port, ":", "")) }

func (f fabric) hasOneLUN() bool {
	return !slices.ContainsFunc(f.LUNs, func(lun int32) bool { return lun != f.LUNs[0] })
}

// stringOrList is a field that some backends send as a string and others as a list.
type stringOrList []string

// UnmarshalJSON accepts both.
func (s *stringOrList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = nil
		if one != "" {
			*s = []string{one}
		}
		return nil
	}
	var many []string
	err := json.Unmarshal(data, &many)
	*s = many
	return err
}
