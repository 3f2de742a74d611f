package mapper

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// iscsi maps to the kubelet's iscsi plugin.
type iscsi struct{}

// target is Cinder's description of an iSCSI connection. The lists are set where the target has
// more than one portal.
type target struct {
	Portal            portal     `json:"target_portal"`
	IQN               scsiName   `json:"target_iqn"`
	LUN               number     `json:"target_lun"`
	Portals           []portal   `json:"target_portals"`
	IQNs              []scsiName `json:"target_iqns"`
	LUNs              []number   `json:"target_luns"`
	AuthMethod        word       `json:"auth_method"`
	AuthUsername      login      `json:"auth_username"`
	AuthPassword      login      `json:"auth_password"`
	DiscoveryMethod   word       `json:"discovery_auth_method"`
	DiscoveryUsername login      `json:"discovery_auth_username"`
	DiscoveryPassword login      `json:"discovery_auth_password"`
}

// path is one way to the disk.
type path struct {
	portal, iqn string
	lun         int64
}

// Check allows many nodes only where each has an initiator name of its own: two nodes with the same
// name would end each other's sessions.
func (iscsi) Check(w Want) error {
	if w.Initiator != "" {
		return promises{name: "an iSCSI disk that all nodes reach by one initiator name"}.check(w)
	}
	return promises{name: w.disk("an iSCSI disk"), manyRead: true, manyWrite: w.Multiattach}.check(w)
}

// Map builds an iscsi source, and the Secret of its CHAP credentials.
func (iscsi) Map(c volume.Connection, w Want) (Mapping, error) {
	var t target
	err := decode(c, &t)
	if err == nil {
		err = checkWays(max(len(t.Portals), len(t.IQNs), len(t.LUNs)))
	}
	if err != nil {
		return Mapping{}, err
	}
	described := t.paths(w)
	paths, warnings, err := addressed(described)
	if err == nil {
		paths, err = w.reached(paths)
	}
	if err == nil {
		err = t.mountable(paths[0], w)
	}
	if err != nil {
		return Mapping{}, err
	}
	source := t.source(paths, w)
	mapping := Mapping{
		Source:   corev1.PersistentVolumeSource{ISCSI: source},
		Warnings: slices.Concat(warnings, t.unpaired(described), t.warnings(paths, w)),
	}
	if source.SessionCHAPAuth || source.DiscoveryCHAPAuth {
		source.SecretRef = &w.SecretRef
		mapping.Secret = t.secret(w)
	}
	return mapping, nil
}

// paths returns the ways to the disk that are fully described. The first one is the backend's own
// choice, if it makes one. The lists are paired as os-brick does (_get_all_targets and _get_luns in
// os_brick/initiator/connectors/base_iscsi.py): the list of LUNs may be missing, which means that
// all of them are the one LUN. A LUN that is missing altogether is 0, as in os-brick, where the
// target serves this volume alone: cinder/volume/drivers/synology/synology_common.py sends none.
func (t *target) paths(w Want) []path {
	one, luns := t.LUN, t.LUNs
	if !one.known && !one.null && len(luns) == 0 && isOwn(string(t.IQN), w.VolumeID) {
		one = number{known: true}
	}
	if len(luns) == 0 {
		luns = slices.Repeat([]number{one}, len(t.IQNs))
	}
	n := min(len(t.Portals), len(t.IQNs), len(luns))
	portals, iqns := append([]portal{t.Portal}, t.Portals[:n]...), append([]scsiName{t.IQN}, t.IQNs[:n]...)
	luns = append([]number{one}, luns[:n]...)
	var paths []path
	for i, portal := range portals {
		if portal != "" && iqns[i] != "" && luns[i].known {
			paths = append(paths, path{string(portal), string(iqns[i]), luns[i].value})
		}
	}
	return paths
}

// unpaired returns a warning if the storage does not say which target or LUN some portals have.
func (t *target) unpaired(paths []path) []string {
	for _, portal := range append([]portal{t.Portal}, t.Portals...) {
		if portal != "" && !slices.ContainsFunc(paths, func(p path) bool { return p.portal == string(portal) }) {
			return []string{fmt.Sprintf("the storage reports %d portals, %d targets and %d LUNs, which cannot all be paired, so some portals such as %s"+
				" are not used: the volume cannot be reached when those that are used fail", len(t.Portals), len(t.IQNs), len(t.LUNs), portal)}
		}
	}
	return nil
}

// addressed returns the paths by portals with an address, and a warning if others are left out. The
// kubelet finds the session of a portal by the text that the kernel shows
// (GetISCSIPortalHostMapForTarget in pkg/volume/util), which is never a DNS name.
func addressed(paths []path) (usable []path, warnings []string, err error) {
	named := ""
	for _, p := range paths {
		if _, err := addressOf(p.portal); err == nil {
			usable = append(usable, p)
		} else if named == "" {
			named = p.portal
		}
	}
	const cause = "the kubelet finds the session of a portal by its address, and never by a DNS name such as %s"
	switch {
	case named == "":
		return usable, nil, nil
	case len(usable) == 0:
		return nil, nil, unsupported(cause+". Remedy: let the array report addresses as its portals, or name them"+
			" in the backend's section of cinder.conf, as by target_ip_address", named)
	default:
		return usable, []string{fmt.Sprintf(cause+", so such portals are not used:"+
			" the volume cannot be reached when the others fail", named)}, nil
	}
}

// reached returns the paths by portals that the class allows.
func (w Want) reached(paths []path) ([]path, error) {
	if len(paths) == 0 {
		return nil, unsupported("the storage reports no portal, no target or no LUN of the volume")
	}
	if len(w.Portals) == 0 {
		return paths, nil
	}
	allowed := slices.DeleteFunc(slices.Clone(paths), func(p path) bool { return !w.isReached(p.portal) })
	if len(allowed) == 0 {
		return nil, unsupported("nodes reach none of the storage's portals, such as %s, according to the property portals (%s):"+
			" correct it", paths[0].portal, joined(w.Portals))
	}
	return allowed, nil
}

// isReached reports whether the class allows a portal.
func (w Want) isReached(portal string) bool {
	address, err := addressOf(portal)
	return err == nil && slices.ContainsFunc(w.Portals, func(p netip.Prefix) bool { return p.Contains(address.Unmap()) })
}

// maxInterface is open-iscsi's limit for the name of the interface that the kubelet creates for an
// initiator name.
const maxInterface = 64

// mountable refuses what the kubelet or the API server would refuse only later, where the claim
// would not show the reason.
func (t *target) mountable(p path, w Want) error {
	switch {
	case p.lun < 0 || p.lun > maxLUN:
		return highLUN(p.lun, "another initiator and host")
	case w.Initiator != "" && !isOwn(p.iqn, w.VolumeID):
		return unsupported("target %s serves several volumes, and nodes that log in to it by the same initiator name end each"+
			" other's sessions: set write-initiator to false in the class or its config, so each node logs in by its own name,"+
			" and configure the array to admit the names of all nodes", p.iqn)
	case w.Initiator != "" && len(w.PVName)+1+len(p.portal) > maxInterface:
		return unsupported("portal %s is too long for a mount with an initiator name: the PV's name, a colon and the portal"+
			" must fit in %d characters; set write-initiator to false, so each node logs in by its own name",
			p.portal, maxInterface)
	case !isCHAPOrNone(t.AuthMethod):
		return unsupported("the target requires authentication by %q, and nodes support only CHAP", t.AuthMethod)
	case !isCHAPOrNone(t.DiscoveryMethod):
		return unsupported("the target's discovery requires authentication by %q, and nodes support only CHAP", t.DiscoveryMethod)
	default:
		return nil
	}
}

func isCHAPOrNone(method word) bool { return method == "" || method == "CHAP" }

func (t *target) source(paths []path, w Want) *corev1.ISCSIPersistentVolumeSource {
	first := paths[0]
	s := &corev1.ISCSIPersistentVolumeSource{
		TargetPortal:      first.portal,
		IQN:               first.iqn,
		Lun:               int32(first.lun), //nolint:gosec // mountable has checked it
		Portals:           otherPortals(paths),
		FSType:            w.fsType(),
		SessionCHAPAuth:   t.AuthMethod == "CHAP",
		DiscoveryCHAPAuth: t.DiscoveryMethod == "CHAP",
	}
	if w.Initiator != "" {
		s.InitiatorName = &w.Initiator
	}
	return s
}

// otherPortals returns further portals of the same disk. Kubernetes has one IQN and one LUN for all
// of them.
func otherPortals(paths []path) []string {
	var others []string
	for _, p := range paths[1:] {
		if p.isBeside(paths[0]) && p.portal != paths[0].portal && !slices.Contains(others, p.portal) {
			others = append(others, p.portal)
		}
	}
	return others
}

// isBeside reports whether both paths have one target and one LUN.
func (p path) isBeside(other path) bool { return p.iqn == other.iqn && p.lun == other.lun }

// warnings returns a warning for portals that the source cannot name, and one for credentials that
// may not be this volume's own.
func (t *target) warnings(paths []path, w Want) []string {
	var warnings []string
	unused := slices.DeleteFunc(slices.Clone(paths), func(p path) bool { return p.isBeside(paths[0]) })
	if len(unused) > 0 {
		warnings = append(warnings, fmt.Sprintf("an iSCSI PersistentVolume has one target for all its portals, so some paths to the volume are not used, such as %s by %s:"+
			" the volume cannot be reached when the target that is used fails",
			unused[0].iqn, unused[0].portal))
	}
	if t.AuthMethod != "" && !isOwn(paths[0].iqn, w.VolumeID) {
		warnings = append(warnings, fmt.Sprintf("target %s serves several volumes, so its CHAP credentials belong to an initiator"+
			" or a host: they must admit every node, and an array that creates new ones for each volume locks nodes out of the earlier volumes",
			paths[0].iqn))
	}
	return warnings
}

// secret returns the credentials under the keys that the kubelet reads.
func (t *target) secret(w Want) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: w.secretMeta(),
		Type:       "kubernetes.io/iscsi-chap",
		Data:       map[string][]byte{},
	}
	if t.AuthMethod != "" {
		s.Data["node.session.auth.username"] = []byte(t.AuthUsername)
		s.Data["node.session.auth.password"] = []byte(t.AuthPassword)
	}
	if t.DiscoveryMethod != "" {
		s.Data["discovery.sendtargets.auth.username"] = []byte(t.DiscoveryUsername)
		s.Data["discovery.sendtargets.auth.password"] = []byte(t.DiscoveryPassword)
	}
	return s
}
