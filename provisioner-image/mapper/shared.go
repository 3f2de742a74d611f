package mapper

import (
	"net/netip"
	"strings"
)

// isOwn reports whether a target or a subsystem serves only this volume: storages that make one for
// each volume name it after the volume's ID, some without its dashes.
func isOwn(name, volumeID string) bool {
	name, volumeID = strings.ToLower(name), strings.ToLower(volumeID)
	return volumeID != "" &&
		(strings.Contains(name, volumeID) || strings.Contains(name, strings.ReplaceAll(volumeID, "-", "")))
}

// maxLUN is the largest LUN that Kubernetes allows.
const maxLUN = 255

// highLUN says why a LUN cannot be mounted, and what gives the next volumes lower ones.
func highLUN(lun int64, client string) error {
	return unsupported("the storage exported LUN %d, and a PersistentVolume supports LUNs 0 to %d. The array numbers LUNs by host, and"+
		" all nodes are one host to it, so this host is full. Remedy: for new claims use a class whose config has %s",
		lun, maxLUN, client)
}

// joined returns networks as text. A network of one address is written as that address.
func joined(networks []netip.Prefix) string {
	var all []string
	for _, n := range networks {
		text := n.String()
		if n.IsSingleIP() {
			text = n.Addr().String()
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
