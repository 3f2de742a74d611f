package mapper

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// nvmeof maps to a static volume of csi-driver-nvmf. The cluster must run its node plugin.
type nvmeof struct{}

// subsystem is Cinder's description of an NVMe-oF connection, in its first and in its second form.
type subsystem struct {
	// The first form: one portal.
	Portal    string   `json:"target_portal"`
	Port      textOrNo `json:"target_port"`
	Transport string   `json:"transport_type"`
	NQN       string   `json:"nqn"`
	// The second form: many portals, each a list of address, port and transport.
	TargetNQN string       `json:"target_nqn"`
	Portals   [][]textOrNo `json:"portals"`
	Replicas  []subsystem  `json:"volume_replicas"`
	// Identifiers of the device. A backend sends one of them.
	UUID  string `json:"vol_uuid"`
	NGUID string `json:"volume_nguid"`
}

// Check allows one node at a time: each node has a name of its own, and the volume is exported to one of them.
func (nvmeof) Check(w Want) error { return promises{name: "an NVMe disk"}.check(w) }

// Map builds a csi source for csi-driver-nvmf.
func (nvmeof) Map(c volume.Connection, w Want) (Mapping, error) {
	var s subsystem
	if err := decode(c, &s); err != nil {
		return Mapping{}, err
	}
	s, err := s.single()
	if err != nil {
		return Mapping{}, err
	}
	s.simplify()
	if s.NQN == "" || s.Portal == "" || s.Port == "" || s.Transport == "" {
		return Mapping{}, unsupported("the storage names no NVMe portal over tcp or rdma")
	}
	return Mapping{Source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver:           nvmeDriver,
		VolumeHandle:     s.handle(w),
		FSType:           w.fsType(),
		ReadOnly:         w.ReadOnly,
		VolumeAttributes: s.attributes(w),
	}}}, nil
}

// single returns the only replica, where the storage describes replicas.
func (s subsystem) single() (subsystem, error) {
	switch len(s.Replicas) {
	case 0:
		return s, nil
	case 1:
		return s.Replicas[0], nil
	default:
		return s, unsupported("the volume has %d replicas, which only Nova can put together: choose a type with one",
			len(s.Replicas))
	}
}

// simplify converts the second form to the first. The plugin supports one portal.
func (s *subsystem) simplify() {
	if s.NQN == "" {
		s.NQN = s.TargetNQN
	}
	s.Transport = transport(s.Transport)
	for _, p := range s.Portals {
		if s.Portal == "" && len(p) == 3 && transport(string(p[2])) != "" {
			s.Portal, s.Port, s.Transport = string(p[0]), p[1], transport(string(p[2]))
		}
	}
}

func transport(name string) string {
	switch name = strings.ToLower(name); {
	case name == "tcp":
		return name
	case name == "rdma", strings.HasPrefix(name, "roce"):
		return "rdma"
	default:
		return ""
	}
}

// handle returns the ID by which the kubelet tells volumes apart. Some versions of the plugin also take it for the
// subsystem's name, so it is that name where the subsystem holds only this volume.
func (s *subsystem) handle(w Want) string {
	if w.VolumeID != "" && !strings.Contains(s.NQN, w.VolumeID) {
		return w.VolumeID
	}
	return s.NQN
}

// attributes identify the device by its name under /dev/disk/by-id on the node. A backend that sends no identifier is
// expected to have given the device the volume's own ID.
func (s *subsystem) attributes(w Want) map[string]string {
	a := map[string]string{
		"targetTrAddr": strings.Trim(s.Portal, "[]"),
		"targetTrPort": string(s.Port),
		"targetTrType": s.Transport,
		"nqn":          s.NQN,
	}
	switch {
	case s.UUID != "":
		a["deviceUUID"] = s.UUID
	case s.NGUID != "":
		a["deviceID"] = "eui." + strings.ToLower(strings.ReplaceAll(s.NGUID, "-", ""))
	default:
		a["deviceUUID"] = w.VolumeID
	}
	return a
}
