package mapper

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// iscsi maps to the kubelet's iscsi plugin.
type iscsi struct{}

// target is Cinder's description of an iSCSI connection. The lists are set where the target has more than one portal.
type target struct {
	Portal            string   `json:"target_portal"`
	IQN               string   `json:"target_iqn"`
	LUN               int32    `json:"target_lun"`
	Portals           []string `json:"target_portals"`
	IQNs              []string `json:"target_iqns"`
	LUNs              []int32  `json:"target_luns"`
	AuthMethod        string   `json:"auth_method"`
	AuthUsername      string   `json:"auth_username"`
	AuthPassword      string   `json:"auth_password"`
	DiscoveryMethod   string   `json:"discovery_auth_method"`
	DiscoveryUsername string   `json:"discovery_auth_username"`
	DiscoveryPassword string   `json:"discovery_auth_password"`
}

// Check allows many readers only where each node has an initiator name of its own: two nodes with the same name would
// end each other's sessions.
func (iscsi) Check(w Want) error {
	if w.Initiator != "" {
		return promises{name: "an iSCSI disk that all nodes reach by one initiator name"}.check(w)
	}
	return promises{name: "an iSCSI disk", manyRead: true}.check(w)
}

// Map builds an iscsi source, and the Secret of its CHAP credentials.
func (iscsi) Map(c volume.Connection, w Want) (Mapping, error) {
	var t target
	if err := c.Decode(&t); err != nil {
		return Mapping{}, err
	}
	t.complete()
	if err := t.mountable(w); err != nil {
		return Mapping{}, err
	}
	source := t.source(w)
	mapping := Mapping{Source: corev1.PersistentVolumeSource{ISCSI: source}}
	if source.SessionCHAPAuth || source.DiscoveryCHAPAuth {
		source.SecretRef = &w.SecretRef
		mapping.Secret = t.secret(w)
	}
	return mapping, nil
}

// complete uses the first portal of the lists where a backend sends only the lists.
func (t *target) complete() {
	if t.Portal == "" && t.hasLists() {
		t.Portal, t.IQN, t.LUN = t.Portals[0], t.IQNs[0], t.LUNs[0]
	}
}

func (t *target) hasLists() bool {
	return len(t.Portals) > 0 && len(t.IQNs) == len(t.Portals) && len(t.LUNs) == len(t.Portals)
}

// maxInterface is open-iscsi's limit for the name of the interface that the kubelet creates for an initiator name.
const maxInterface = 64

// mountable refuses what the kubelet or the API server would refuse only later, where the claim would not show the
// reason.
func (t *target) mountable(w Want) error {
	switch {
	case t.Portal == "" || t.IQN == "":
		return unsupported("the storage names no portal or no target of the volume")
	case t.LUN < 0 || t.LUN > maxLUN:
		return unsupported("the storage exported LUN %d, Kubernetes mounts 0 to %d", t.LUN, maxLUN)
	case w.Initiator != "" && len(w.PVName)+1+len(t.Portal) > maxInterface:
		return unsupported("portal %s is too long to be mounted with an initiator name: the PV's name, a colon and the portal"+
			" must fit in %d characters; set write-initiator to false, so that each node logs in by its own name",
			t.Portal, maxInterface)
	case !isCHAPOrNone(t.AuthMethod):
		return unsupported("the target wants authentication by %q, nodes can do CHAP", t.AuthMethod)
	case !isCHAPOrNone(t.DiscoveryMethod):
		return unsupported("the target's discovery wants authentication by %q, nodes can do CHAP", t.DiscoveryMethod)
	default:
		return nil
	}
}

// maxLUN is the largest LUN that Kubernetes allows.
const maxLUN = 255

func isCHAPOrNone(method string) bool { return method == "" || method == "CHAP" }

func (t *target) source(w Want) *corev1.ISCSIPersistentVolumeSource {
	s := &corev1.ISCSIPersistentVolumeSource{
		TargetPortal:      t.Portal,
		IQN:               t.IQN,
		Lun:               t.LUN,
		Portals:           t.otherPortals(),
		FSType:            w.fsType(),
		ReadOnly:          w.ReadOnly,
		SessionCHAPAuth:   t.AuthMethod == "CHAP",
		DiscoveryCHAPAuth: t.DiscoveryMethod == "CHAP",
	}
	if w.Initiator != "" {
		s.InitiatorName = &w.Initiator
	}
	return s
}

// otherPortals returns further portals of the same disk. Kubernetes has one IQN and one LUN for all of them.
func (t *target) otherPortals() []string {
	if !t.hasLists() {
		return nil
	}
	var others []string
	for i, portal := range t.Portals {
		same := t.IQNs[i] == t.IQN && t.LUNs[i] == t.LUN
		if same && portal != t.Portal && !slices.Contains(others, portal) {
			others = append(others, portal)
		}
	}
	return others
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
