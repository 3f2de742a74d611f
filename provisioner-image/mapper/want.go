package mapper

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Options are what class and config say about the source.
type Options struct {
	// Kind is the kind of connection of all volumes of the class, or "" where the class does not
	// name it.
	Kind   string
	FSType string
	// Initiator is the name that every node logs in with, or "" where each node has its own.
	Initiator string
	// Multiattach is true if the class says that its volume type lets many clients write.
	Multiattach bool
	// Host is by whom every node connects over NVMe-oF. Without it each node has names of its own.
	Host   NVMeHost
	Fabric FibreChannel
	// Portals are the only addresses at which nodes reach an iSCSI target, or none where they reach
	// all of them.
	Portals []netip.Prefix
	// FlexDriver mounts the kinds of connection that have no mapper, and Kind.
	FlexDriver string
	Ceph       Ceph
}

// NVMeHost is what an NVMe subsystem knows a host by.
type NVMeHost struct{ NQN, ID string }

// Ceph is what a node needs for an rbd image and Cinder does not send.
type Ceph struct {
	// ClusterID is the cluster's name in the configuration of ceph-csi.
	ClusterID string
	// ImageFeatures and Mounter are options of ceph-csi.
	ImageFeatures, Mounter string
	// Secret names an existing Secret with the key. Without it, Key is written to a Secret of the
	// PV's own.
	Secret corev1.SecretReference
	Key    credentials.Secret
	// User is the cephx user, if it is not the one that Cinder names.
	User string
}

// Want is what claim, class and config ask of the source.
type Want struct {
	Options
	PVName      string
	VolumeID    string
	AccessModes []corev1.PersistentVolumeAccessMode
	VolumeMode  corev1.PersistentVolumeMode
	// Filled is true if the volume has content from the beginning. Many nodes can only read, so
	// that an empty volume would stay empty.
	Filled bool
	// MountOptions are those of the class.
	MountOptions []string
	// ReadOnly is how the volume must be mounted.
	ReadOnly bool
	// SecretRef names the source's own Secret, if it needs one.
	SecretRef corev1.SecretReference
}

// CheckVolume refuses a new volume before its export. It may not be encrypted. And where many nodes
// are to write to it, and the class has multiattach, its volume type must have that, too.
func (w Want) CheckVolume(v volume.Volume) error {
	if v.Encrypted {
		return errEncrypted
	}
	if v.Shareable || !w.Multiattach || !slices.Contains(w.AccessModes, corev1.ReadWriteMany) {
		return nil
	}
	return unsupported("the class has multiattach, but its volume type does not: set the type's extra spec multiattach=\"<is> True\"")
}

// IsBlock reports whether the claim wants a raw device.
func (w Want) IsBlock() bool { return w.VolumeMode == corev1.PersistentVolumeBlock }

// fsType returns the file system, empty for a raw device.
func (w Want) fsType() string {
	if w.IsBlock() {
		return ""
	}
	return w.FSType
}

// secretMeta returns the name of the source's own Secret.
func (w Want) secretMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: w.SecretRef.Name, Namespace: w.SecretRef.Namespace}
}

func (w Want) onlyReads() bool {
	return len(w.AccessModes) > 0 && !slices.ContainsFunc(w.AccessModes,
		func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany })
}

// disk names a kind of disk that many nodes can write to only if its volume type says so.
func (w Want) disk(kind string) string {
	if w.Multiattach {
		return kind
	}
	return kind + " of a class without multiattach"
}

// promises is what a kind of source supports, beyond one node that reads and writes.
type promises struct {
	name string
	// manyRead is true if many nodes can read a file system at the same time.
	manyRead bool
	// manyReadDevice is true if many nodes can read a raw device, and none can write to it.
	manyReadDevice bool
	// manyWrite is true if many nodes can write to a raw device at the same time.
	manyWrite bool
}

// check refuses access modes that are not supported, and names those that are.
func (p promises) check(w Want) error {
	for _, mode := range w.AccessModes {
		if reason := p.against(mode, w); reason != "" {
			return &UnsupportedError{Claim: true, Reason: fmt.Sprintf("access mode %s is not supported %s", mode, reason)}
		}
	}
	if w.onlyReads() {
		return w.checkNoWrite()
	}
	return nil
}

// askOneNode is the remedy where a volume can be used on one node only.
const askOneNode = ": request ReadWriteOnce or ReadWriteOncePod"

func (p promises) against(mode corev1.PersistentVolumeAccessMode, w Want) string {
	switch mode {
	case corev1.ReadWriteOnce, corev1.ReadWriteOncePod:
		return ""
	case corev1.ReadOnlyMany:
		return p.againstReaders(w)
	case corev1.ReadWriteMany:
		switch {
		case !p.manyWrite:
			return "on " + p.name + askOneNode
		case !w.IsBlock():
			return "with a file system on " + p.name + ": request volumeMode Block or ReadWriteOnce"
		default:
			return ""
		}
	default:
		return "on " + p.name + askOneNode
	}
}

// againstReaders returns why many nodes cannot read the volume, or "".
func (p promises) againstReaders(w Want) string {
	switch {
	case !p.manyRead:
		return "on " + p.name + askOneNode
	case !w.onlyReads():
		return "together with a mode that writes, since the first pod would write while others read: request one of them"
	case !w.Filled:
		return "on a new, empty volume: clone one that has content"
	case w.IsBlock() && !p.manyReadDevice:
		return "with volumeMode Block on " + p.name + ", which pods of all nodes could write to: request volumeMode Filesystem"
	default:
		return ""
	}
}
