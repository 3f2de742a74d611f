package mapper

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// iscsi maps to the kubelet's own iscsi plugin.
type iscsi struct{}

// target is what Cinder says about an iSCSI connection. The lists are there where the target has more
// than one portal.
type target struct {
	Portal       string   `json:"target_portal"`
	IQN          string   `json:"target_iqn"`
	LUN          int32    `json:"target_lun"`
	Portals      []string `json:"target_portals"`
	IQNs         []string `json:"target_iqns"`
	LUNs         []int32  `json:"target_luns"`
	AuthMethod   string   `json:"auth_method"`
	AuthUsername string   `json:"auth_username"`
	AuthPassword string   `json:"auth_password"`
	AccessMode   string   `json:"access_mode"`
	Encrypted    bool     `json:"encrypted"`
}

// Check allows what one node at a time can do with a disk.
func (iscsi) Check(w Want) error {
	for _, mode := range w.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return &UnfitError{Claim: true, Reason: fmt.Sprintf("access mode %s is not possible on an iSCSI disk:"+
				" ask for ReadWriteOnce or ReadWriteOncePod", mode)}
		}
	}
	return nil
}

// Map builds an iscsi source, and the Secret of its CHAP credentials.
func (m iscsi) Map(c volume.Connection, w Want) (Mapping, error) {
	if err := m.Check(w); err != nil {
		return Mapping{}, err
	}
	var t target
	if err := c.Decode(&t); err != nil {
		return Mapping{}, err
	}
	if err := t.mountable(w); err != nil {
		return Mapping{}, err
	}
	source := t.source(w)
	mapping := Mapping{Source: corev1.PersistentVolumeSource{ISCSI: source}}
	if t.AuthMethod == "CHAP" {
		source.SessionCHAPAuth = true
		source.SecretRef = &corev1.SecretReference{Name: w.Secret.Name, Namespace: w.Secret.Namespace}
		mapping.Secret = t.secret(w.Secret)
	}
	return mapping, nil
}

// maxInterface is open-iscsi's limit for the interface that the kubelet makes for an initiator name.
const maxInterface = 64

// mountable refuses what the kubelet or the API server would refuse later, when nobody reads the reason.
func (t target) mountable(w Want) error {
	switch {
	case t.Encrypted:
		return &UnfitError{Reason: "the volume type encrypts its volumes, which only Nova can undo:" +
			" choose a type without encryption"}
	case t.LUN < 0 || t.LUN > 255:
		return &UnfitError{Reason: fmt.Sprintf("the storage exported LUN %d, Kubernetes mounts 0 to 255", t.LUN)}
	case w.Initiator != "" && len(w.PVName)+1+len(t.Portal) > maxInterface:
		return &UnfitError{Reason: fmt.Sprintf("portal %s is too long to be mounted with an initiator name:"+
			" the PV's name, a colon and the portal must fit in %d characters", t.Portal, maxInterface)}
	case t.AuthMethod != "" && t.AuthMethod != "CHAP":
		return &UnfitError{Reason: fmt.Sprintf("the target wants authentication by %q, nodes can do CHAP", t.AuthMethod)}
	default:
		return nil
	}
}

func (t target) source(w Want) *corev1.ISCSIPersistentVolumeSource {
	s := &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: t.Portal,
		IQN:          t.IQN,
		Lun:          t.LUN,
		Portals:      t.otherPortals(),
		ReadOnly:     t.AccessMode == "ro",
	}
	if w.Initiator != "" {
		s.InitiatorName = &w.Initiator
	}
	if !w.Block() {
		s.FSType = w.FSType
	}
	return s
}

// otherPortals are further ways to the same disk. Kubernetes knows one IQN and one LUN for all of them.
func (t target) otherPortals() []string {
	if len(t.IQNs) != len(t.Portals) || len(t.LUNs) != len(t.Portals) {
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

// secret holds the credentials under the names that the kubelet reads.
func (t target) secret(at corev1.SecretReference) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: at.Name, Namespace: at.Namespace},
		Type:       "kubernetes.io/iscsi-chap",
		Data: map[string][]byte{
			"node.session.auth.username": []byte(t.AuthUsername),
			"node.session.auth.password": []byte(t.AuthPassword),
		},
	}
}
