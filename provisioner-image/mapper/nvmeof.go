package mapper

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// nvmeof maps to a static volume of csi-driver-nvmf. The cluster must run its node plugin.
type nvmeof struct{}

// subsystem is Cinder's description of an NVMe-oF connection, in its first and in its second form.
type subsystem struct {
	// The first form: one portal.
	Portal    host      `json:"target_portal"`
	Port      port      `json:"target_port"`
	Transport transport `json:"transport_type"`
	NQN       nqn       `json:"nqn"`
	// The second form: many portals.
	TargetNQN nqn         `json:"target_nqn"`
	Portals   []reach     `json:"portals"`
	Replicas  []subsystem `json:"volume_replicas"`
	// Identifiers of the device. A backend sends one of them.
	UUID  deviceID `json:"vol_uuid"`
	NGUID deviceID `json:"volume_nguid"`
}

// reach is one of many portals: a list of address, port and transport in JSON. Of one that nodes do
// not speak it is empty: its address may be of another form.
type reach struct {
	host      host
	port      port
	transport transport
}

// UnmarshalJSON reads the list.
func (r *reach) UnmarshalJSON(data []byte) error {
	*r = reach{}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil || len(parts) != 3 {
		return err
	}
	if err := json.Unmarshal(parts[2], &r.transport); err != nil || r.transport == "" {
		return err
	}
	if err := json.Unmarshal(parts[0], &r.host); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &r.port)
}

// transport is how an NVMe subsystem is reached: tcp or rdma, and empty for any other, which nodes
// do not speak.
type transport string

// UnmarshalJSON reads what backends call rdma, too.
func (t *transport) UnmarshalJSON(data []byte) error {
	text, err := textOf(data)
	switch name := strings.ToLower(text); {
	case name == "tcp":
		*t = "tcp"
	case name == "rdma", strings.HasPrefix(name, "roce"):
		*t = "rdma"
	default:
		*t = ""
	}
	return err
}

// Check allows one node at a time: each node has a name of its own, and the volume is exported to
// one of them.
func (nvmeof) Check(w Want) error { return promises{name: "an NVMe disk"}.check(w) }

// CheckGrowth refuses to grow the disk of a source whose file system nothing would grow after that.
func CheckGrowth(s corev1.PersistentVolumeSource) error {
	if s.CSI == nil || s.CSI.Driver != nvmeDriver {
		return nil
	}
	return unsupported("csi-driver-nvmf cannot expand a volume: it expands neither the device nor the file system. Remedy: remove expand" +
		" from the config's verbs, and allowVolumeExpansion from the class")
}

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
		return Mapping{}, unsupported("the storage reports no NVMe portal over tcp or rdma")
	}
	if !s.Portal.isAddress() {
		return Mapping{}, unsupported("the NVMe portal %s is a DNS name: csi-driver-nvmf hands it to the kernel as it is, which takes addresses"+
			" only. Remedy: let the array report an address as its portal, or name it in the backend's section of"+
			" cinder.conf, as by target_ip_address", s.Portal)
	}
	if !isOwn(string(s.NQN), w.VolumeID) && !isOwn(string(s.NQN), string(s.UUID)) {
		return Mapping{}, unsupported("subsystem %s serves several volumes, and csi-driver-nvmf cannot distinguish the volumes of one"+
			" subsystem: a node could not connect a second one, and would disconnect all of them when it unmounts the first. Remedy:"+
			" use iSCSI or Fibre Channel of that array, or a backend with a subsystem for each volume", s.NQN)
	}
	return Mapping{Source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: nvmeDriver,
		// Old versions of the plugin take the handle for the subsystem's name.
		VolumeHandle:     string(s.NQN),
		FSType:           w.fsType(),
		VolumeAttributes: s.attributes(w),
	}}, Warnings: s.warnings()}, nil
}

// warnings returns a warning if some portals cannot be named in the source.
func (s *subsystem) warnings() []string {
	if len(s.Portals) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("csi-driver-nvmf connects to one portal, so only %[2]s of %[1]d portals is used: the volume cannot be reached when"+
		" it fails", len(s.Portals), s.Portal)}
}

// single returns the only replica, where the storage describes replicas.
func (s subsystem) single() (subsystem, error) {
	switch len(s.Replicas) {
	case 0:
		return s, nil
	case 1:
		return s.Replicas[0], nil
	default:
		return s, unsupported("the volume has %d replicas, which only Nova can combine: choose a type with one",
			len(s.Replicas))
	}
}

// simplify converts the second form to the first. The plugin supports one portal, and the kernel
// none by a DNS name.
func (s *subsystem) simplify() {
	if s.NQN == "" {
		s.NQN = s.TargetNQN
	}
	for _, p := range s.Portals {
		if p.transport != "" && (s.Portal == "" || !s.Portal.isAddress() && p.host.isAddress()) {
			s.Portal, s.Port, s.Transport = p.host, p.port, p.transport
		}
	}
}

// attributes identify the device by its name under /dev/disk/by-id on the node. A backend that
// sends no identifier is expected to have given the device the volume's own ID. A node connects by
// the name that the volume is exported to, and not by its own, if the config has one: a storage
// that looks at names refuses every other.
func (s *subsystem) attributes(w Want) map[string]string {
	a := map[string]string{
		"targetTrAddr": string(s.Portal),
		"targetTrPort": string(s.Port),
		"targetTrType": string(s.Transport),
		"nqn":          string(s.NQN),
	}
	if w.Host.NQN != "" {
		a["hostNqn"] = w.Host.NQN
	}
	if w.Host.ID != "" {
		a["hostId"] = w.Host.ID
	}
	switch {
	case s.UUID != "":
		a["deviceUUID"] = strings.ToLower(string(s.UUID)) // as in udev's link, nvme-uuid.…
	case s.NGUID != "":
		a["deviceID"] = "eui." + strings.ToLower(strings.ReplaceAll(string(s.NGUID), "-", ""))
	default:
		a["deviceUUID"] = w.VolumeID
	}
	return a
}
